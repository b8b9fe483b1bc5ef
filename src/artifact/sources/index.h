/* SPDX-License-Identifier: Apache-2.0
 *
 * artifacts-index.json, schema 2: what one scope's releases offer (spec/artifacts.md 9).
 *
 * Always true: a parsed index obeys every rule of its schema, so readers need not check again; the
 * text is a pure function of the content.
 */
#pragma once

#include "artifact/names/wit.h"
#include "base/buf.h"
#include "base/error.h"

#include <stdint.h>

#define INDEX_FILE_NAME "artifacts-index.json"
#define INDEX_BYTES_MAX (8u * 1024 * 1024) /* about 25 000 versions */

struct index_asset {
    char *file;
    char *platform; /* NULL for the untagged payload */
    char *sha256;
};

struct index_version {
    char *version;
    char *release; /* tag of the release its assets hang on */
    bool has_level;
    uint64_t built_at_level;
    struct strv interfaces; /* murmur:*, ascending */
    struct index_asset *assets;
    size_t asset_count;
};

struct index_artifact {
    char *name; /* bare */
    char *runtime;
    char *description; /* NULL when absent */
    struct strv tags;
    struct index_version *versions; /* newest first */
    size_t version_count;
};

struct artifact_index {
    char *scope;
    struct index_artifact *artifacts; /* ascending by name */
    size_t count;
};

/* Reads schema 2. <what> names the index in messages. E-IDX-002 locating the value at fault. */
struct artifact_index *
index_parse (const char *text, size_t len, const char *what, struct mur_error **err);
void index_free (struct artifact_index *x);
DEFINE_CLEANUP (struct artifact_index, index_free)
#define _cleanup_index_ _cleanup_ (index_freep)
/* The text, with its final newline. Owned. */
char *index_text (const struct artifact_index *x);

/* By bare name, or NULL. */
const struct index_artifact *index_find (const struct artifact_index *x, const char *bare);
const struct index_version *
index_find_version (const struct index_artifact *a, const char *version);
/* The asset for a platform: its own tag first, then the untagged one; NULL when only foreign ones
 * exist. */
const struct index_asset *index_asset_for (const struct index_version *v, const char *platform);
/* The newest version whose interfaces fit the served level and, when <platform> is not NULL, that
 * has an asset for it. */
const struct index_version *index_newest_fit (const struct index_artifact *a, const char *platform);
/* "<bare>-<version>[-<platform>].mur.zip". Owned. */
char *index_asset_file (const char *bare, const char *version, const char *platform);
/* "linux-x86_64, darwin-aarch64" of a version's assets, "any platform" for an untagged one. Owned.
 */
char *index_platforms_text (const struct index_version *v);

void index_version_clear (struct index_version *v);
void index_artifact_clear (struct index_artifact *a);
