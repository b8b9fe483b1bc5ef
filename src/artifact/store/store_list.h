/* SPDX-License-Identifier: Apache-2.0
 *
 * Walking a store: rows for `mur list`, versions of one name, leftovers of the layout before
 * scopes.
 */
#pragma once

#include "artifact/store/store.h"

struct store_row {
    enum store_kind kind;
    char *name, *version;
    char *role; /* the sidecar's */
    char *packaging;
    struct strv platforms; /* sorted union */
    struct wit_contracts contracts;
    bool has_untagged;
    bool has_level; /* the archive says at which level it was built */
    uint64_t built_at_level;
};

struct store_rows {
    struct store_row *items;
    size_t len, cap;
};

/* Adds one row per name@version; sorted by store, name, version, packaging. */
bool store_list (const struct store *s, struct store_rows *rows, struct mur_error **err);
/* The newest version of a name in any of the stores. Owned; NULL: there is none. */
char *stores_newest (const struct stores *stores, const char *name);
/* Versions of one name in a store, unsorted. */
void store_versions (const struct store *s, const char *name, struct strv *versions);
/* Old-layout directories (before scopes), for doctor. */
void store_leftovers (const struct store *s, struct strv *paths);
void store_rows_clear (struct store_rows *rows);
#define _cleanup_rows_ _cleanup_ (store_rows_clear)
