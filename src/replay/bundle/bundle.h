/* SPDX-License-Identifier: Apache-2.0
 *
 * A recorded session as one file that can be handed on: trace, tape, bodies, and the artifacts that
 * ran (docs/spec/records.md 14.2).
 *
 * Always true: what is unpacked was looked at first, as a whole: plain files of known names, each
 * once, bounded; nothing is written of a bundle that holds anything else.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#define BUNDLE_FORMAT 1

/* A file of an artifact's payload: <name> is "<scope>/<bare>/<version>/<file>". */
struct bundle_file {
    char *name;
    struct buf data;
};
struct bundle_files {
    struct bundle_file *items;
    size_t len, cap;
};
void bundle_files_clear (struct bundle_files *f);
#define _cleanup_bundle_files_ _cleanup_ (bundle_files_clear)

/* True for a file, whatever its name, that is no trace's. */
bool bundle_is_one (const char *path);

/* Packs the record in <dir> with what ran. <replace> (NULL: nothing is) takes a text's secrets and
 * names out: the bundle says that it is not strict then. E-IO-001, E-IO-003. */
typedef char *bundle_replace_fn (void *ctx, const char *text, size_t len, size_t *out_len);
bool bundle_pack (const char *dir, const char *session_id, const struct bundle_files *store,
                  bundle_replace_fn *replace, void *ctx, struct buf *out, struct mur_error **err);
/* Unpacks into <dir>, an empty folder: trace.jsonl, replay.jsonl, blobs/, and artifacts as a
 * project's store. *is_strict: nothing was taken out of it. E-RPL-004, E-IO-001, E-IO-003. */
bool bundle_unpack (const char *path, const char *dir, bool *is_strict, struct mur_error **err);
