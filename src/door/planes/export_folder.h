/* SPDX-License-Identifier: Apache-2.0
 *
 * One exported folder: reading a file of it, listing it, and every reason not to (spec/door.md 12).
 *
 * Always true: nothing outside the held work folder is opened, whatever links lie in it; size,
 * time, bytes and hash of a file come from one descriptor; a file is served whole or not at all.
 */
#pragma once

#include "base/cancel.h"
#include "base/digest.h"
#include "base/json.h"
#include "fs/root.h"

#include <sys/stat.h>

struct export_folder {
    struct fs_root *work; /* the held work folder; borrowed */
    const char *root;     /* relative to it, as declared; borrowed */
    uint64_t max_bytes;   /* of one file */
    bool follows_links;   /* not under class `scoped`: a link whose target lies beneath the root */
};

enum export_outcome {
    EXPORT_OK,
    EXPORT_NOT_FOUND,
    EXPORT_OUTSIDE_ROOT,
    EXPORT_SYMLINK_REFUSED,
    EXPORT_NOT_A_REGULAR_FILE,
    EXPORT_TOO_LARGE,
    EXPORT_IO_ERROR,
};

/* "ok", "not_found", ...: the code of answers and of the trace. Static. */
const char *export_outcome_name (enum export_outcome outcome);
/* The HTTP status of a refusal. */
int export_outcome_status (enum export_outcome outcome);
/* The sentence of a refusal; names nothing of the host. Static. */
const char *export_outcome_message (enum export_outcome outcome);

/* Percent-decodes once; an incomplete or non-hex escape stays as it is. Appends to out. */
void export_decode_path (const char *text, size_t len, struct buf *out);
/* A decoded path by its shape alone: the plain relative path (owned, one trailing slash dropped),
 * or NULL for one that is empty, absolute, not UTF-8, holds NUL, or has a component "", "." or
 * "..". */
char *export_plain_path (const char *decoded, size_t len);

struct export_file {
    char *path; /* below the root, links resolved */
    struct buf bytes;
    int64_t mtime_ms; /* Unix */
    char sha256[SHA256_HEX_LEN + 1];
};
void export_file_clear (struct export_file *f);

/* Reads one file of at most max_bytes. <path> as export_plain_path returns it. */
enum export_outcome
export_read (const struct export_folder *e, const char *path, struct export_file *out);
/* Opens it only: whether it is there and may be served now, and its resolved path (owned). */
enum export_outcome export_probe (const struct export_folder *e, const char *path, char **resolved);
/* What it is now, to tell whether it changes. */
enum export_outcome export_look (const struct export_folder *e, const char *path, struct stat *st);

struct export_listing {
    json_t *entries; /* sorted by path; owned */
    uint64_t count, total_bytes;
};
/* Every regular file, recursively; a missing root is an empty one. <cancel> ends it early with
 * EXPORT_IO_ERROR. */
enum export_outcome
export_list (const struct export_folder *e, struct cancel *cancel, struct export_listing *out);
/* The same without digests: no file is read. */
enum export_outcome export_list_unread (const struct export_folder *e, struct cancel *cancel,
                                        struct export_listing *out);
