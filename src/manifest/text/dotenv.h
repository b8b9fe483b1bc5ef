/* SPDX-License-Identifier: Apache-2.0
 *
 * `.env` files (spec/manifest.md 17.2): where the file is, what its lines mean, and setting what is
 * not set yet.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

struct dotenv_entry {
    char *name;
    char *value;
};

struct dotenv {
    struct dotenv_entry *entries; /* in file order, repeated names included */
    size_t len;
    size_t cap;
};

/* Reads NAME=value lines as the usual readers do: `export ` before a name, # comments (behind a
 * value with a blank before), values in double (with \n \t \" \$ \\), single or back quotes over
 * several lines. The text has no mark. E-IO-003 naming <file> and the 1-based line. */
bool dotenv_parse (const char *text, size_t len, const char *file, struct dotenv *out,
                   struct mur_error **err);
void dotenv_clear (struct dotenv *d);
#define _cleanup_dotenv_ _cleanup_ (dotenv_clear)

/* The nearest directory at or above <start> (absolute) that holds murmur.yaml, else <start>. Owned.
 */
char *dotenv_root (const char *start);
/* Reads <root>/.env and puts each name that is not set into this process's environment. A missing
 * file is nothing. Only while no other thread runs. E-IO-003. */
bool dotenv_load (const char *root, struct mur_error **err);
