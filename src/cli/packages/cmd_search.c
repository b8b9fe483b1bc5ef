/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur search`: look through one artifact index, or the global store (spec/artifacts.md 9).
 */
#include "artifact/names/name.h"
#include "artifact/names/platform.h"
#include "artifact/names/version.h"
#include "artifact/sources/index_load.h"
#include "artifact/sources/source.h"
#include "artifact/store/store.h"
#include "artifact/store/store_list.h"
#include "base/alloc.h"
#include "base/diag.h"
#include "cli/line/args.h"
#include "cli/line/text_table.h"
#include "cli/packages/commands.h"
#include "cli/packages/signer.h"
#include "manifest/settings/artifact_manifest.h"
#include "manifest/settings/config.h"

#include <string.h>

static const char none[] = "—";

struct search {
    const char *query;
    uint64_t limit, shown;
    struct text_table table;
    struct strv notes;
};

static bool
matches (const char *query, const char *name, const char *description, const struct strv *tags)
{
    if (strcasestr (name, query) || (description && strcasestr (description, query)))
        return true;
    for (size_t i = 0; i < tags->len; i++)
        if (strcasestr (tags->items[i], query))
            return true;
    return false;
}

static void
add_row (struct search *s, const char *name, const char *version, const char *runtime,
         const char *description)
{
    text_table_add (&s->table, name);
    text_table_add (&s->table, version ? version : none);
    text_table_add (&s->table, runtime && runtime[0] ? runtime : none);
    text_table_add (&s->table, description && description[0] ? description : none);
    s->shown++;
}

/* Why the newest version is not the one shown. */
static void
add_note (struct search *s, const char *name, const struct index_version *newest)
{
    _cleanup_misfits_ struct wit_misfits misfits = { 0 };
    if (wit_names_fit (&newest->interfaces, wit_served_level (), &misfits)) {
        _cleanup_free_ char *published = index_platforms_text (newest);
        strv_printf (&s->notes, "%s: %s is published for %s, not for %s", name, newest->version,
                     published, platform_host ());
        return;
    }
    _cleanup_strv_ struct strv needed = { 0 };
    for (size_t i = 0; i < misfits.len; i++)
        strv_push (&needed, misfits.items[i].interface);
    _cleanup_free_ char *list = strv_join (&needed, ", ");
    strv_printf (&s->notes, "%s: %s needs %s, which WIT level %u does not have", name,
                 newest->version, list, wit_served_level ());
}

static void
search_index (struct search *s, const struct artifact_index *x)
{
    for (size_t i = 0; i < x->count && s->shown < s->limit; i++) {
        const struct index_artifact *a = &x->artifacts[i];
        _cleanup_free_ char *name = x_asprintf ("%s/%s", x->scope, a->name);
        if (! matches (s->query, name, a->description, &a->tags))
            continue;
        const struct index_version *fitting = index_newest_fit (a, platform_host ());
        add_row (s, name, fitting ? fitting->version : NULL, a->runtime, a->description);
        if (fitting != &a->versions[0])
            add_note (s, name, &a->versions[0]);
    }
}

/* --- the global store --- */

static bool
row_fits (const struct store_row *row)
{
    bool has_payload = row->has_untagged || strv_contains (&row->platforms, platform_host ());
    return has_payload && wit_fits (&row->contracts, wit_served_level (), NULL);
}

/* The packed description of one stored version; NULL when there is none. Owned. */
static char *
packed_description (const struct store *store, const struct store_row *row)
{
    _cleanup_payload_ struct store_payload payload = { 0 };
    if (store_find (store, row->name, row->version, NULL, &payload, NULL) != STORE_FOUND)
        return NULL;
    _cleanup_package_ struct package *p = package_from_file (payload.path, NULL);
    if (! p || ! package_try_open (p) || ! p->manifest->description)
        return NULL;
    return x_strdup (p->manifest->description);
}

static void
add_store_note (struct search *s, const struct store_row *newest)
{
    _cleanup_misfits_ struct wit_misfits misfits = { 0 };
    if (wit_fits (&newest->contracts, wit_served_level (), &misfits)) {
        strv_printf (&s->notes, "%s: %s has no payload for %s", newest->name, newest->version,
                     platform_host ());
        return;
    }
    _cleanup_free_ char *why = wit_misfits_text (&misfits);
    strv_printf (&s->notes, "%s: %s: %s", newest->name, newest->version, why);
}

static bool
search_store (struct search *s, enum store_kind kind, struct mur_error **err)
{
    _cleanup_stores_ struct stores *stores = stores_new (NULL, err);
    if (! stores)
        return false;
    const struct store *store = &stores->at[kind];
    _cleanup_rows_ struct store_rows rows = { 0 };
    if (! store_list (store, &rows, err))
        return false;
    static const struct strv no_tags = { 0 };
    for (size_t i = 0, next; i < rows.len && s->shown < s->limit; i = next) {
        const struct store_row *newest = &rows.items[i], *fitting = NULL;
        for (next = i; next < rows.len && strcmp (rows.items[next].name, rows.items[i].name) == 0;
             next++) {
            const struct store_row *row = &rows.items[next];
            if (version_compare (row->version, newest->version) > 0)
                newest = row;
            if (row_fits (row) &&
                (! fitting || version_compare (row->version, fitting->version) > 0))
                fitting = row;
        }
        const struct store_row *shown = fitting ? fitting : newest;
        _cleanup_free_ char *description = packed_description (store, shown);
        if (! matches (s->query, shown->name, description, &no_tags))
            continue;
        add_row (s, shown->name, fitting ? fitting->version : NULL, shown->role, description);
        if (fitting != newest)
            add_store_note (s, newest);
        _cleanup_free_ char *signer = store_signer (store, shown->name, shown->version);
        if (signer)
            strv_printf (&s->notes, "%s: signer of %s: %s", shown->name, shown->version, signer);
    }
    return true;
}

/* --- the command --- */

static bool
search_address (struct search *s, const char *address, struct mur_error **err)
{
    _cleanup_index_ struct artifact_index *x = index_load (address, err);
    if (x)
        search_index (s, x);
    return x != NULL;
}

/* Without --index: what the configured or published index lists, and what comes with mur (beside a
 * chosen index when that has nothing). The published one may be out of reach. */
static bool
search_all (struct search *s, struct mur_error **err)
{
    struct mur_error *caught = NULL;
    _cleanup_config_ struct config *config = config_load (err);
    if (! config)
        return false;
    bool is_chosen = config->index_url && config->index_url[0];
    if (! search_address (s, index_address (config), &caught)) {
        if (is_chosen)
            return mur_propagate (err, caught);
        diag_note ("only what is on this machine was searched: %s", caught->message);
        mur_error_free (caught);
        if (! search_store (s, STORE_GLOBAL, err))
            return false;
    }
    return (is_chosen && s->shown) || search_store (s, STORE_BUNDLED, err);
}

static bool
search_local (struct search *s, struct mur_error **err)
{
    return search_store (s, STORE_GLOBAL, err) &&
           (s->shown || search_store (s, STORE_BUNDLED, err));
}

int
cmd_search (const struct cli_args *args, struct mur_error **err)
{
    static const char *const columns[] = { "NAME", "VERSION", "RUNTIME", "DESCRIPTION" };
    struct search s = {
        .query = cli_positional (args, "QUERY"),
        .limit = cli_number (args, "--limit"),
    };
    for (size_t i = 0; i < ARRAY_LEN (columns); i++)
        text_table_column (&s.table, columns[i]);
    const char *address = cli_value (args, "--index");
    bool ok = ! address                        ? search_all (&s, err)
              : strcmp (address, "local") == 0 ? search_local (&s, err)
                                               : search_address (&s, address, err);
    if (ok && s.shown == 0)
        out_puts ("No results found.\n");
    else if (ok)
        text_table_print (&s.table);
    if (ok && s.notes.len) {
        _cleanup_free_ char *notes = strv_join (&s.notes, "\n");
        out_printf ("\n%s\n", notes);
    }
    text_table_clear (&s.table);
    strv_free (&s.notes);
    return ok ? CLI_OK : CLI_FAILED;
}
