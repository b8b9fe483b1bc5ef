/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/mcp/server_find.h"

#include "artifact/names/name.h"
#include "artifact/package/tree.h"
#include "artifact/store/store.h"
#include "artifact/store/store_list.h"
#include "base/alloc.h"
#include "manifest/text/suggest.h"

#include <string.h>

#define SERVERS_START SCOPE_LOCAL "/mcp-"

/* The full names it may mean, the likeliest first. */
static void
names_of (const char *typed, struct strv *out)
{
    if (strchr (typed, '/')) {
        strv_push (out, typed);
        return;
    }
    if (! str_starts (typed, "mcp-"))
        strv_printf (out, SCOPE_LOCAL "/mcp-%s", typed);
    strv_printf (out, SCOPE_LOCAL "/%s", typed);
}

static bool
open_server (struct found_server *f, const struct store_payload *payload, struct mur_error **err)
{
    _cleanup_buf_ struct buf text = { 0 };
    f->package = store_read (payload, f->name, f->version, err);
    if (! f->package || ! package_open_zip (f->package, err) ||
        ! package_read_entry (f->package, MCP_PINNED_FILE, &text, err) ||
        ! mcp_pinned_read (&f->pinned, text.data ? text.data : "", text.len, MCP_PINNED_FILE, err))
        return mur_context (err, "%s@%s is no server of tools", f->name, f->version);
    f->short_name = strrchr (f->name, '/') + 1;
    if (str_starts (f->short_name, "mcp-") && f->short_name[4])
        f->short_name += 4;
    if (f->pinned.url)
        return true;
    f->tree = package_tree_of (f->package, MCP_TREE_PREFIX, err);
    return f->tree != NULL;
}

/* Servers are called mcp-NAME when they are added: what else is in the stores is not offered. */
static void
hint_nearest (const struct stores *stores, const char *typed, struct mur_error **err)
{
    _cleanup_rows_ struct store_rows rows = { 0 };
    struct suggestion near = { NULL, 0 };
    for (int kind = 0; kind < STORE_COUNT; kind++)
        if (! store_list (&stores->at[kind], &rows, NULL))
            break;
    for (size_t i = 0; i < rows.len; i++) {
        const char *name = rows.items[i].name;
        if (str_starts (name, SERVERS_START))
            suggestion_offer (&near, typed,
                              strchr (typed, '/') ? name : name + strlen (SERVERS_START));
    }
    suggestion_hint (
        &near, "mur mcp list says what was added; mur mcp add npm:NAME@VERSION adds one", err);
}

/* None of that version may be one of another. */
static void
refuse_unknown (const struct stores *stores, const char *typed, const struct strv *names,
                struct mur_error **err)
{
    mur_fail (err, E_REG_001, "no server %s in a store", typed);
    for (size_t i = 0; i < names->len; i++) {
        _cleanup_free_ char *newest = stores_newest (stores, names->items[i]);
        if (! newest)
            continue;
        mur_hint (err, "the newest that is there is %s@%s", names->items[i], newest);
        return;
    }
    hint_nearest (stores, typed, err);
}

bool
server_find (const char *typed, struct found_server *out, struct mur_error **err)
{
    const char *at = strrchr (typed, '@');
    _cleanup_free_ char *name =
        at && at != typed ? x_strndup (typed, (size_t)(at - typed)) : x_strdup (typed);
    _cleanup_free_ char *here = project_root_find (".");
    _cleanup_stores_ struct stores *stores = stores_new (here, err);
    _cleanup_strv_ struct strv names = { 0 };
    *out = (struct found_server){ 0 };
    if (! stores)
        return false;
    names_of (name, &names);
    for (size_t i = 0; i < names.len; i++) {
        _cleanup_payload_ struct store_payload payload = { 0 };
        _cleanup_free_ char *version =
            at && at != typed ? x_strdup (at + 1) : stores_newest (stores, names.items[i]);
        enum store_found found =
            version ? stores_find (stores, names.items[i], version, NULL, &payload, err)
                    : STORE_NOT_FOUND;
        if (found == STORE_FAILED)
            return false;
        if (found == STORE_NOT_FOUND)
            continue;
        out->name = x_strdup (names.items[i]);
        out->version = steal_ptr (&version);
        return open_server (out, &payload, err);
    }
    refuse_unknown (stores, typed, &names, err);
    return false;
}

void
found_server_clear (struct found_server *f)
{
    free (f->name);
    free (f->version);
    free (f->tree);
    if (f->package)
        package_free (f->package);
    mcp_pinned_clear (&f->pinned);
}
