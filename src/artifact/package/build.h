/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur build`: from a folder to a .mur.zip (spec/artifacts.md 4).
 *
 * Always true: every refusal comes before a byte of output exists; nothing is packed but the
 * manifest, what it declares and the level note; the same input gives the same bytes.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <stdint.h>

struct build_result {
    char *path;     /* of the archive, as shown */
    bool has_level; /* false: the payload fits no known level */
    unsigned level;
};

void build_result_clear (struct build_result *r);
#define _cleanup_build_result_ _cleanup_ (build_result_clear)

/* Packs <source>/murmur.yaml and its requires_files. <output> NULL: beside the manifest. Lints go
 * to stderr. E-BLD-001..005, E-MAN-*, E-IO-001, E-IO-003. */
bool build_artifact (const char *source, const char *output, struct build_result *result,
                     struct mur_error **err);

/* --- shared by both (internal) --- */

/* One file to pack. */
struct build_entry {
    char *name; /* in the archive */
    char *bytes;
    size_t len;
};

struct build_plan {
    struct build_entry *items;
    size_t len, cap;
};

void build_plan_clear (struct build_plan *p);
#define _cleanup_plan_ _cleanup_ (build_plan_clear)
/* Takes name and bytes over. */
void build_plan_add (struct build_plan *p, char *name, char *bytes, size_t len);
/* Adds murmur-build.json, zips, and replaces <path> in one rename, parents created. */
bool build_plan_write (struct build_plan *p, const char *path, const struct build_result *result,
                       struct mur_error **err);
/* <output> as a file path: NULL gives <dir>/<file>, a folder gives <output>/<file>, else itself,
 * which must end .mur.zip. */
char *
build_output_path (const char *dir, const char *output, const char *file, struct mur_error **err);
/* E-BLD-001 for a name that breaks the part rule. */
bool build_check_name (const char *name, struct mur_error **err);
