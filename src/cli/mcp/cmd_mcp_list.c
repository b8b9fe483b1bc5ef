/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur mcp list`: the servers of tools this folder declares, and those that were added and are not
 * declared here. Nothing of them is started.
 */
#include "artifact/names/platform.h"
#include "artifact/names/version.h"
#include "artifact/store/lock_file.h"
#include "artifact/store/store.h"
#include "artifact/store/store_list.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/json_write.h"
#include "cli/line/args.h"
#include "cli/line/text_table.h"
#include "cli/mcp/commands.h"
#include "cli/mcp/server_find.h"
#include "manifest/capsule/capsule_entry.h"
#include "net/oauth/oauth_store.h"
#include "sandbox/programs/exec_allowlist.h"

#include <string.h>
#include <unistd.h>

#define SHOWN_DIGEST 12 /* letters of it in the table */

/* A login, in one word: "yes", "no", "expired"; "-" where there is nothing to log in to. */
static const char *
login_of (const struct mcp_pinned *p, const struct artifact_entry *e)
{
    _cleanup_error_ struct mur_error *why = NULL;
    if (! p->url)
        return "-";
    if (e && e->gateway)
        return "key";
    _cleanup_ (oauth_grant_freep) struct oauth_grant *g = oauth_store_read (p->url, &why);
    if (! g)
        return why ? "unreadable" : "no";
    bool is_over = g->expires_ms && g->expires_ms <= clock_unix_ms () && ! g->refresh_token;
    return is_over ? "expired" : "yes";
}

/* What the lock says of it. */
static const char *
pinned_of (const struct lock *lock, const char *name, const char *sha256)
{
    const struct lock_entry *pin = lock ? lock_find (lock, name) : NULL;
    const char *hash = pin ? lock_entry_hash (pin, platform_host ()) : NULL;
    return ! hash ? "not yet" : str_eq (hash, sha256) ? "yes" : "differs";
}

static const char *
state_of (const struct mcp_pinned *p, const char *pinned)
{
    _cleanup_free_ char *path =
        p->url ? NULL : exec_find_candidate (p->interpreter, getenv ("PATH"));
    if (str_eq (pinned, "differs"))
        return "not what murmur.lock pins";
    if (! p->url && (! path || access (path, X_OK) < 0))
        return "its interpreter is not on PATH";
    return "ready";
}

static size_t
offered_of (const struct mcp_pinned *p, const struct artifact_entry *e)
{
    size_t count = 0, i;
    json_t *tool;
    json_array_foreach (p->tools, i, tool) count +=
        ! e || ! e->mcp->tools.is_set ||
        str_list_has (&e->mcp->tools, json_get_string (tool, "name"));
    return count;
}

/* One server as an object; <e> NULL: it is not declared here. */
static json_t *
server_json (const char *typed, const struct artifact_entry *e, const struct lock *lock)
{
    _cleanup_found_ struct found_server f = { 0 };
    _cleanup_error_ struct mur_error *why = NULL;
    json_t *o = json_object ();
    json_set_bool (o, "declared", e != NULL);
    if (! server_find (typed, &f, &why)) {
        json_set_string (o, "name", e ? e->name : typed);
        if (e)
            json_set_string (o, "version", e->version);
        json_set_string (o, "state", why->code == E_REG_001 ? "not added" : why->message);
        return o;
    }
    const struct mcp_pinned *p = &f.pinned;
    const char *pinned = e ? pinned_of (lock, f.name, f.package->sha256) : "-";
    json_set_string (o, "name", f.name);
    json_set_string (o, "version", f.version);
    json_set_string (o, "state", state_of (p, pinned));
    json_set_string (o, "runtime", p->url ? "far away" : p->interpreter);
    json_set_string (o, "source", p->source);
    if (p->url)
        json_set_string (o, "url", p->url);
    json_set_string (o, "revision", p->revision);
    json_set_u64 (o, "tools", json_array_size (p->tools));
    json_set_u64 (o, "offered", offered_of (p, e));
    json_set_string (o, "sha256", f.package->sha256);
    json_set_string (o, "pinned", pinned);
    json_set_string (o, "login", login_of (p, e));
    return o;
}

static void
add_declared (const struct capsule_manifest *m, const struct lock *lock, json_t *list)
{
    for (size_t i = 0; i < m->artifacts.len; i++) {
        const struct artifact_entry *e = &m->artifacts.items[i];
        if (e->role != ROLE_MCP)
            continue;
        _cleanup_free_ char *typed = x_asprintf ("%s@%s", e->name, e->version);
        json_array_append_new (list, server_json (typed, e, lock));
    }
}

static bool
has_server (const json_t *list, const struct store_row *row)
{
    size_t i;
    json_t *one;
    json_array_foreach (list, i, one)
    {
        if (str_eq (json_get_string (one, "name"), row->name) &&
            str_eq (json_get_string (one, "version"), row->version))
            return true;
    }
    return false;
}

static bool
add_others (const char *project, json_t *list, struct mur_error **err)
{
    _cleanup_stores_ struct stores *stores = stores_new (project, err);
    _cleanup_rows_ struct store_rows rows = { 0 };
    for (int kind = 0; stores && kind < STORE_COUNT; kind++)
        if (! store_list (&stores->at[kind], &rows, err))
            return false;
    for (size_t i = 0; i < rows.len; i++) {
        const struct store_row *row = &rows.items[i];
        if (! str_eq (row->role, "mcp") || has_server (list, row))
            continue;
        _cleanup_free_ char *typed = x_asprintf ("%s@%s", row->name, row->version);
        json_array_append_new (list, server_json (typed, NULL, NULL));
    }
    return stores != NULL;
}

/* --- the table --- */

static const char *
cell (const json_t *o, const char *member)
{
    const char *text = json_get_string (o, member);
    return text ? text : "-";
}

static void
print_table (const json_t *list)
{
    static const char *const titles[] = { "NAME",  "VERSION", "HERE",  "STATE", "RUN BY",
                                          "TOOLS", "PINNED",  "LOGIN", "FROM",  "DIGEST" };
    _cleanup_text_table_ struct text_table t = { 0 };
    size_t i;
    json_t *one;
    for (size_t k = 0; k < ARRAY_LEN (titles); k++)
        text_table_column (&t, titles[k]);
    json_array_foreach (list, i, one)
    {
        uint64_t tools = 0, offered = 0;
        bool is_known =
            json_get_u64 (one, "tools", &tools) && json_get_u64 (one, "offered", &offered);
        _cleanup_free_ char *count = ! is_known ? x_strdup ("-")
                                     : tools == offered
                                         ? x_asprintf ("%llu", (unsigned long long)tools)
                                         : x_asprintf ("%llu of %llu", (unsigned long long)offered,
                                                       (unsigned long long)tools);
        _cleanup_free_ char *digest = x_strndup (cell (one, "sha256"), SHOWN_DIGEST);
        const char *cells[] = { cell (one, "name"),
                                cell (one, "version"),
                                json_is_true (json_object_get (one, "declared")) ? "yes" : "no",
                                cell (one, "state"),
                                cell (one, "runtime"),
                                count,
                                cell (one, "pinned"),
                                cell (one, "login"),
                                cell (one, "source"),
                                digest };
        for (size_t k = 0; k < ARRAY_LEN (cells); k++)
            text_table_add (&t, cells[k]);
    }
    text_table_print (&t);
}

/* What a person does about what is not ready. */
static void
tell_remedies (const json_t *list)
{
    size_t i;
    json_t *one;
    json_array_foreach (list, i, one)
    {
        const char *state = cell (one, "state"), *login = cell (one, "login");
        if (str_eq (state, "not added"))
            diag_note ("%s@%s is declared and in no store: mur mcp add makes it",
                       cell (one, "name"), cell (one, "version"));
        else if (str_eq (state, "not what murmur.lock pins"))
            diag_note ("%s is another package than murmur.lock pins: mur mcp show %s says what it "
                       "is",
                       cell (one, "name"), cell (one, "name"));
        if (str_eq (login, "no") || str_eq (login, "expired"))
            diag_note ("mur mcp login %s, where %s wants that", cell (one, "url"),
                       cell (one, "name"));
    }
}

static void
print (const struct cli_args *args, const json_t *list)
{
    if (cli_has (args, "--json")) {
        _cleanup_free_ char *text = json_pretty (list, JSON_TEXT_ORDERED);
        out_printf ("%s\n", text);
    } else if (! json_array_size (list)) {
        out_puts ("No servers of tools: none is declared here, and none was added.\n");
        diag_note ("mur mcp add npm:NAME@VERSION adds one; docs/mcp.md tells the rest");
    } else {
        print_table (list);
        tell_remedies (list);
    }
}

int
cmd_mcp_list (const struct cli_args *args, struct mur_error **err)
{
    _cleanup_json_ json_t *list = json_array ();
    _cleanup_free_ char *project = project_root_find (".");
    _cleanup_free_ char *path = project ? x_asprintf ("%s/murmur.yaml", project) : NULL;
    if (path) {
        _cleanup_ (capsule_manifest_freep) struct capsule_manifest *m =
            capsule_manifest_read (path, MANIFEST_SECRETLESS, err);
        _cleanup_lock_ struct lock *lock = m ? lock_read (project, err) : NULL;
        if (! lock)
            return CLI_FAILED;
        add_declared (m, lock, list);
    }
    if (! add_others (project, list, err))
        return CLI_FAILED;
    print (args, list);
    return CLI_OK;
}
