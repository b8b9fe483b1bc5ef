/* SPDX-License-Identifier: Apache-2.0
 *
 * A tar archive written to a descriptor, and its digest.
 *
 * Always true: the same entries give the same bytes: owned by root, dated 1970, in the order they
 * were added; names of any length (POSIX.1-2001).
 */
#pragma once

#include "base/digest.h"

struct tar {
    int fd; /* borrowed */
    struct sha256 *sha;
    uint64_t len; /* bytes written */
    int failed;   /* errno of the first write that failed; the rest writes nothing */
};

void tar_begin (struct tar *t, int fd);
/* Names are relative, with '/' between folders and none at the end. */
void tar_add_dir (struct tar *t, const char *name);
void tar_add_file (struct tar *t, const char *name, const void *data, size_t len);
/* Another name of a file added before. */
void tar_add_link (struct tar *t, const char *name, const char *target);
/* Ends the archive and gives its digest. False with errno when any of it could not be written. */
bool tar_end (struct tar *t, char hex[SHA256_HEX_LEN + 1]);
