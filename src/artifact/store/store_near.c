/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/store/store_near.h"
#include "artifact/store/store_list.h"

#include "artifact/names/name.h"
#include "base/alloc.h"
#include "manifest/text/schema.h"
#include "manifest/text/suggest.h"

#include <string.h>

/* Every version of one name in any store, newest last. */
static void
versions_of (const struct stores *stores, const char *name, struct strv *versions)
{
    for (int kind = 0; kind < STORE_COUNT; kind++) {
        _cleanup_strv_ struct strv here = { 0 };
        if (stores->at[kind].root)
            store_versions (&stores->at[kind], name, &here);
        for (size_t i = 0; i < here.len; i++)
            if (! strv_contains (versions, here.items[i]))
                strv_push (versions, here.items[i]);
    }
    strv_sort (versions);
}

/* "^0.1", "~1", ">=2", "*", "1.x": what other programs take for a range. */
static bool
is_range (const char *version)
{
    return strpbrk (version, "^~<>=*") || strcmp (version, "latest") == 0 ||
           str_ends (version, ".x");
}

static char *
versions_hint (const struct strv *versions, const char *name, const char *version)
{
    _cleanup_free_ char *list = strv_join (versions, ", ");
    return x_asprintf ("%sthere is %s@%s",
                       version && is_range (version) ? "a version is exact, not a range; " : "",
                       name, list);
}

/* The distance of two artifact names: of their bare names, one more when the scopes differ. */
static size_t
distance_of (const char *a, const char *b)
{
    size_t apart = schema_distance (name_bare (a), name_bare (b));
    return apart == SIZE_MAX ? apart : apart + (strcmp (a, b) != 0 && apart == 0);
}

char *
store_near_hint (const struct stores *stores, const char *name, const char *version)
{
    _cleanup_strv_ struct strv versions = { 0 };
    versions_of (stores, name, &versions);
    if (versions.len)
        return versions_hint (&versions, name, version);
    _cleanup_rows_ struct store_rows rows = { 0 };
    for (int kind = 0; kind < STORE_COUNT; kind++)
        if (! store_list (&stores->at[kind], &rows, NULL))
            return NULL;
    size_t accepted = strlen (name_bare (name)) / 3, nearest = SIZE_MAX;
    const struct store_row *found = NULL;
    for (size_t i = 0; i < rows.len; i++) {
        size_t apart = distance_of (name, rows.items[i].name);
        if (apart < nearest && apart <= (accepted ? accepted : 1)) {
            nearest = apart;
            found = &rows.items[i];
        }
    }
    return found ? x_asprintf ("did you mean %s@%s?", found->name, found->version) : NULL;
}
