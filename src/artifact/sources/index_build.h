/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur index`: from a folder of packages to the index a release publishes (spec/artifacts.md 9).
 *
 * Always true: nothing is written before every file was read and judged; the same files give the
 * same bytes.
 */
#pragma once

#include "artifact/sources/index.h"

struct index_request {
    const char *dir;
    const char *repo;    /* "<owner>/<repo>" */
    const char *release; /* tag */
    const char *merge;   /* an older index file, or NULL */
    const char *output;
};

struct index_outcome {
    char *scope;
    size_t artifacts, versions; /* in the written index */
    size_t kept, replaced;      /* versions, when merging */
};

/* Indexes every *.mur.zip directly in the folder; all or nothing. E-IDX-001, E-IDX-002 (the older
 * index), E-IDX-003, E-IO-003. */
bool index_folder (const struct index_request *request, struct index_outcome *out,
                   struct mur_error **err);
