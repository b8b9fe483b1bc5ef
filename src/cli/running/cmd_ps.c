/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur ps`: running sessions, from their records, each door asked (spec/cli.md 3, spec/door.md
 * 16-17).
 *
 * Always true: only a record whose process is provably gone, or a file that is no record, is
 * removed, and by the table form alone; --json creates and removes nothing; no token is ever
 * printed.
 */
#include "base/alloc.h"
#include "base/diag.h"
#include "base/json.h"
#include "cli/line/args.h"
#include "cli/running/commands.h"
#include "cli/running/fleet_sessions.h"
#include "cli/running/listing.h"
#include "cli/running/ps_formations.h"

#include <string.h>

static const char *
status_word (const struct listing *l, size_t i)
{
    return l->is_live[i] ? "running" : "unreachable";
}

/* --- JSON --- */

static json_t *
capsule_json (const struct listing *l, size_t i)
{
    const struct running_record *r = l->records[i];
    json_t *o = json_object ();
    json_set_string (o, "session_id", r->session_id);
    json_set_string (o, "status", status_word (l, i));
    json_set_string (o, "url", r->url);
    json_set_u64 (o, "pid", (uint64_t)r->pid);
    json_set_string (o, "process_start", r->process_start);
    json_set_string (o, "capsule_name", r->capsule_name);
    json_set_string (o, "capsule_version", r->capsule_version);
    json_set_string (o, "workdir", r->workdir);
    json_set_string (o, "records_dir", r->records_dir);
    json_set_bool (o, "outlives_launcher", r->outlives_launcher);
    json_set_string (o, "started_at", r->started_at);
    json_set_string (o, "formation_id", r->formation_id);
    json_set_string (o, "formation_member", r->formation_member);
    json_set_bool (o, "formation_entry", r->formation_entry);
    return o;
}

static void
print_json (const struct listing *l)
{
    _cleanup_json_ json_t *answer = json_object ();
    json_t *capsules = json_array ();
    for (size_t i = 0; i < l->len; i++)
        json_array_append_new (capsules, capsule_json (l, i));
    json_object_set_new (answer, "capsules", capsules);
    json_object_set_new (answer, "formations", ps_formations_json (&l->scan));
    _cleanup_free_ char *text = json_pretty (answer, JSON_TEXT_ORDERED);
    out_printf ("%s\n", text);
}

/* --- table --- */

static void
print_row (const struct listing *l, size_t i, bool shows_formation)
{
    const struct running_record *r = l->records[i];
    char up[32];
    listing_uptime (r->started_at, up);
    _cleanup_free_ char *capsule = x_asprintf ("%s@%s", r->capsule_name, r->capsule_version);
    out_printf ("%-36s  %-24s  %-12s  %-8s  %-9s  ", r->session_id, capsule, status_word (l, i),
                r->outlives_launcher ? "yes" : "no", up);
    if (shows_formation)
        out_printf ("%-36s  ", r->formation_id ? r->formation_id : "-");
    out_printf ("%s\n", r->url);
}

/* Rows newest first; a formation's members stand together, where its newest one is. */
static void
print_table (const struct listing *l)
{
    bool shows_formation = false;
    for (size_t i = 0; i < l->len; i++)
        shows_formation |= l->records[i]->formation_id != NULL;
    out_printf ("%-36s  %-24s  %-12s  %-8s  %-9s  %s", "SESSION", "CAPSULE", "STATUS", "DETACHED",
                "UPTIME", "");
    if (shows_formation)
        out_printf ("%-36s  ", "FORMATION");
    out_puts ("URL\n");
    bool *is_printed = x_new_array (bool, l->len + 1);
    for (size_t i = 0; i < l->len; i++) {
        if (is_printed[i])
            continue;
        print_row (l, i, shows_formation);
        const char *formation = l->records[i]->formation_id;
        for (size_t j = i + 1; formation && j < l->len; j++)
            if (str_eq (l->records[j]->formation_id, formation)) {
                print_row (l, j, shows_formation);
                is_printed[j] = true;
            }
    }
    free (is_printed);
}

static void
report_pruned (const struct running_scan *scan, bool is_verbose)
{
    size_t gone = 0;
    for (size_t i = 0; i < scan->len; i++) {
        const struct running_entry *e = &scan->entries[i];
        if (e->liveness != RUNNING_GONE)
            continue;
        gone++;
        if (is_verbose && e->record.formation_id)
            diag_stderr_line ("pruned: %s — %s (formation %s)", e->record.session_id,
                              e->gone_reason, e->record.formation_id);
        else if (is_verbose)
            diag_stderr_line ("pruned: %s — %s", e->record.session_id, e->gone_reason);
    }
    for (size_t i = 0; is_verbose && i < scan->unreadable_len; i++)
        diag_stderr_line ("pruned: %s — not a readable record", scan->unreadable[i]);
    size_t total = gone + scan->unreadable_len;
    if (total && ! is_verbose)
        diag_stderr_line ("pruned %zu stale record%s; mur ps --verbose names each", total,
                          total == 1 ? "" : "s");
    for (size_t i = 0; i < scan->older_len; i++)
        diag_stderr_line ("skipped: %s — written by an older mur", scan->older[i]);
}

/* Who started whom: no column, since most sessions were started by nobody. */
static void
report_lineage (const struct listing *l)
{
    for (size_t i = 0; i < l->len; i++)
        if (l->records[i]->spawned_by)
            diag_stderr_line ("delegated: %s — started by %s", l->records[i]->session_id,
                              l->records[i]->spawned_by);
}

int
cmd_ps (const struct cli_args *args, struct mur_error **err)
{
    if (cli_has (args, "--fleet"))
        return fleet_sessions_list (args, err);
    bool is_json = cli_has (args, "--json"), is_verbose = cli_has (args, "--verbose");
    _cleanup_ (listing_free) struct listing l = { 0 };
    if (! listing_read (&l, ! is_json, err))
        return CLI_FAILED;
    if (is_json) {
        print_json (&l);
        return CLI_OK;
    }
    running_prune (&l.scan);
    report_pruned (&l.scan, is_verbose);
    if (is_verbose)
        report_lineage (&l);
    if (l.len == 0)
        out_puts ("no running capsules\n");
    else
        print_table (&l);
    ps_formations_print (&l.scan);
    return CLI_OK;
}
