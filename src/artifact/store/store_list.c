/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/store/store_list.h"
#include "artifact/store/store_meta.h"

#include "artifact/names/name.h"
#include "artifact/names/version.h"
#include "artifact/store/store_internal.h"
#include "base/alloc.h"

#include <string.h>
#include <sys/stat.h>

/* Names in a directory, sorted, hidden ones left out. An unreadable directory is empty. */
static void
list_dir (const char *path, struct strv *names)
{
    _cleanup_closedir_ DIR *d = opendir (path);
    if (! d)
        return;
    for (struct dirent *e; (e = readdir (d));)
        if (e->d_name[0] != '.')
            strv_push (names, e->d_name);
    strv_sort (names);
}

static void
row_clear (struct store_row *row)
{
    free (row->name);
    free (row->version);
    free (row->role);
    free (row->packaging);
    strv_free (&row->platforms);
    wit_contracts_clear (&row->contracts);
}

void
store_rows_clear (struct store_rows *rows)
{
    for (size_t i = 0; i < rows->len; i++)
        row_clear (&rows->items[i]);
    free (rows->items);
    *rows = (struct store_rows){ 0 };
}

/* --- rows --- */

static void
add_missing (struct strv *into, const struct strv *from)
{
    for (size_t i = 0; i < from->len; i++)
        if (! strv_contains (into, from->items[i]))
            strv_push (into, from->items[i]);
}

static void
merge_payload (struct store_row *row, const struct store_payload *payload)
{
    struct store_meta meta;
    if (! store_meta_read (payload, row->name, row->version, &meta, NULL))
        return;
    if (! row->role) {
        row->role = steal_ptr (&meta.artifact_runtime);
        row->packaging = steal_ptr (&meta.runtime);
    }
    add_missing (&row->platforms, &meta.platforms);
    add_missing (&row->contracts.exports, &meta.contracts.exports);
    add_missing (&row->contracts.imports, &meta.contracts.imports);
    row->has_untagged |= payload->platform == NULL;
    row->has_level |= meta.has_level;
    if (meta.has_level)
        row->built_at_level = meta.built_at_level;
    store_meta_clear (&meta);
}

/* The platform text of a payload file, "" for the untagged one, NULL for another file. */
static char *
platform_of_payload (const char *file, const char *stem)
{
    size_t len = strlen (stem), file_len = strlen (file);
    static const char ending[] = ".mur.zip";
    if (! str_ends (file, ending) || strncmp (file, stem, len) != 0)
        return NULL;
    size_t end = file_len - strlen (ending);
    if (end == len)
        return x_strdup ("");
    return end > len + 1 && file[len] == '-' ? x_strndup (file + len + 1, end - len - 1) : NULL;
}

/* Gathers the payloads of one version; false when there is none. */
static bool
fill_row (const struct store *s, struct store_row *row)
{
    _cleanup_free_ char *dir = store_version_dir (s, row->name, row->version);
    _cleanup_free_ char *stem = store_stem (row->name, row->version, NULL);
    _cleanup_strv_ struct strv files = { 0 };
    list_dir (dir, &files);
    bool found = false;
    for (size_t i = 0; i < files.len; i++) {
        _cleanup_free_ char *platform = platform_of_payload (files.items[i], stem);
        if (! platform)
            continue;
        _cleanup_payload_ struct store_payload payload = { 0 };
        const char *wanted = platform[0] ? platform : NULL;
        if (store_find_exact (s, row->name, row->version, wanted, &payload, NULL) != STORE_FOUND)
            continue;
        merge_payload (row, &payload);
        found = true;
    }
    strv_sort (&row->platforms);
    strv_sort (&row->contracts.exports);
    strv_sort (&row->contracts.imports);
    return found;
}

static void
add_row (const struct store *s, const char *name, const char *version, struct store_rows *rows)
{
    x_grow (rows->items, rows->len, rows->cap);
    struct store_row *row = &rows->items[rows->len];
    *row = (struct store_row){ .kind = s->kind,
                               .name = x_strdup (name),
                               .version = x_strdup (version) };
    if (fill_row (s, row))
        rows->len++;
    else
        row_clear (row);
}

static int
by_name_version (const void *a, const void *b)
{
    const struct store_row *x = a, *y = b;
    if (x->kind != y->kind)
        return (int)x->kind - (int)y->kind;
    int order = strcmp (x->name, y->name);
    if (order == 0)
        order = strcmp (x->version, y->version);
    if (order == 0)
        order = strcmp (x->packaging ? x->packaging : "", y->packaging ? y->packaging : "");
    return order;
}

bool
store_list (const struct store *s, struct store_rows *rows, struct mur_error **err)
{
    (void)err;
    if (! s->root)
        return true;
    _cleanup_strv_ struct strv scopes = { 0 };
    list_dir (s->root, &scopes);
    for (size_t i = 0; i < scopes.len; i++) {
        const char *scope = scopes.items[i];
        bool is_wanted = s->kind != STORE_BUNDLED || str_eq (scope, SCOPE_BUNDLED);
        if (! is_wanted || ! name_part_is_valid (scope, strlen (scope)))
            continue;
        _cleanup_free_ char *scope_dir = x_asprintf ("%s/%s", s->root, scope);
        _cleanup_strv_ struct strv bares = { 0 };
        list_dir (scope_dir, &bares);
        for (size_t j = 0; j < bares.len; j++) {
            if (! name_part_is_valid (bares.items[j], strlen (bares.items[j])))
                continue;
            _cleanup_free_ char *name = x_asprintf ("%s/%s", scope, bares.items[j]);
            _cleanup_strv_ struct strv versions = { 0 };
            store_versions (s, name, &versions);
            for (size_t k = 0; k < versions.len; k++)
                add_row (s, name, versions.items[k], rows);
        }
    }
    if (rows->len > 1)
        qsort (rows->items, rows->len, sizeof (*rows->items), by_name_version);
    return true;
}

void
store_versions (const struct store *s, const char *name, struct strv *versions)
{
    if (! s->root || ! name_is_full (name))
        return;
    _cleanup_free_ char *dir = x_asprintf ("%s/%s", s->root, name);
    _cleanup_strv_ struct strv names = { 0 };
    list_dir (dir, &names);
    for (size_t i = 0; i < names.len; i++)
        if (version_is_segment (names.items[i]))
            strv_push (versions, names.items[i]);
}

/* --- leftovers --- */

/* A directory of the flat layout holds payloads named after itself one level too high. */
static bool
holds_flat_payload (const char *dir, const char *name, const char *version)
{
    _cleanup_free_ char *version_dir = x_asprintf ("%s/%s", dir, version);
    _cleanup_free_ char *stem = x_asprintf ("%s-%s", name, version);
    _cleanup_strv_ struct strv files = { 0 };
    list_dir (version_dir, &files);
    for (size_t i = 0; i < files.len; i++)
        if (str_starts (files.items[i], stem))
            return true;
    return false;
}

void
store_leftovers (const struct store *s, struct strv *paths)
{
    if (! s->root)
        return;
    _cleanup_strv_ struct strv names = { 0 };
    list_dir (s->root, &names);
    for (size_t i = 0; i < names.len; i++) {
        _cleanup_free_ char *dir = x_asprintf ("%s/%s", s->root, names.items[i]);
        _cleanup_strv_ struct strv versions = { 0 };
        list_dir (dir, &versions);
        for (size_t j = 0; j < versions.len; j++)
            if (holds_flat_payload (dir, names.items[i], versions.items[j])) {
                strv_push (paths, dir);
                break;
            }
    }
}

char *
stores_newest (const struct stores *stores, const char *name)
{
    _cleanup_strv_ struct strv versions = { 0 };
    const char *best = NULL;
    for (size_t i = 0; i < STORE_COUNT; i++)
        if (stores->at[i].root)
            store_versions (&stores->at[i], name, &versions);
    for (size_t i = 0; i < versions.len; i++)
        if (! best || version_compare (versions.items[i], best) > 0)
            best = versions.items[i];
    return best ? x_strdup (best) : NULL;
}
