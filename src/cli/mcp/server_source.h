/* SPDX-License-Identifier: Apache-2.0
 *
 * From what a person types ("npm:NAME@V", "pypi:NAME@V", "path:DIR", "https://HOST/PATH") to a
 * folder that holds everything a server is started from, and how it is started; of one far away to
 * its address.
 *
 * Always true: packages come by exact hashes, which stand in the tree, and none of their install
 * scripts runs unless it was allowed by name.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"

struct source_request {
    const char *source;      /* as it was typed */
    const char *bin;         /* which of its programs; NULL: the obvious one */
    const char *const *also; /* packages beside it; not NULL-terminated */
    size_t also_count;
    const char *const *scripted; /* packages whose install scripts may run */
    size_t scripted_count;
    bool has_version; /* the package that is made gets one that was asked for */
};

struct server_source {
    char *dir;  /* a temporary folder, owned and removed */
    char *tree; /* canonical folder in it */
    char *url;  /* of one far away, which has neither interpreter nor entry; NULL: it has */
    char *name; /* "filesystem", from the package's name */
    char *version, *source, *interpreter, *entry;
    struct strv flags;
    struct strv notes; /* what a person should know */
    char *wants;       /* why it may not run on this machine, as a sentence; NULL: nothing */
    bool is_library;   /* it has no program: its main file is started */
};

/* E-IO-001, E-IO-003, E-MCP-001. */
bool server_source_fetch (const struct source_request *q, struct server_source *out,
                          struct mur_error **err);
void server_source_clear (struct server_source *s);
#define _cleanup_source_ _cleanup_ (server_source_clear)
