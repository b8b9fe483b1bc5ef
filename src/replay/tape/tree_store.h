/* SPDX-License-Identifier: Apache-2.0
 *
 * A folder's files kept by digest at several moments: a body a file, a listing a folder, so that
 * what did not change between two moments is neither read nor stored again.
 *
 * A listing holds a line an entry in byte order of the names, which are percent-encoded:
 *   f <octal mode> <size> <sha256> <name>     a file
 *   l <octal mode> <size> <sha256> <name>     a link; the body is where it leads
 *   d <octal mode> <entries> <sha256> <name>  a folder; the body is its listing
 *   - <octal mode> <size> - <name>            left out
 * Always true: no link is followed; a file whose times say that it was not touched since it was
 * read is not read again, unless it was touched so shortly before that its times could not tell.
 */
#pragma once

#include "replay/tape/tape.h"

struct tree_limits {
    uint64_t max_bytes, max_file; /* of contents */
    const char *const *exclude;   /* names and paths, as fnmatch patterns */
    size_t exclude_count;
};

struct tree_look_store;

struct tree_taken {
    char sha[SHA256_HEX_LEN + 1]; /* of the root's listing */
    uint64_t files, bytes;
    struct strv left_out; /* paths, the first 100 */
    uint64_t left_out_count;
};

struct tree_look_store *tree_store_new (const struct tree_limits *limits);
void tree_store_free (struct tree_look_store *s);
DEFINE_CLEANUP (struct tree_look_store, tree_store_free)

/* Keeps what <root> holds now. <tape> NULL: digests alone, nothing is stored. False: the folder
 * cannot be read, or a body not be stored. */
bool tree_take (struct tree_look_store *s, struct tape *tape, int root_fd, struct tree_taken *out);
void tree_taken_clear (struct tree_taken *t);
