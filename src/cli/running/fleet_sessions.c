/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/running/fleet_sessions.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/printable.h"
#include "cli/running/running_session.h"
#include "client/fleet.h"
#include "client/fleet_wait.h"
#include "net/kube/kube_object.h"

#include <string.h>

static const char *
or_dash (const char *text)
{
    return text ? text : "-";
}

static bool
open_view (const struct cli_args *args, struct fleet_view *v, struct mur_error **err)
{
    return fleet_view_open (cli_value (args, "--kubeconfig"), cli_value (args, "--namespace"), v,
                            err);
}

/* --- ps --- */

static json_t *
describe (const json_t *job, const json_t *news)
{
    _cleanup_free_ char *state = fleet_job_state (job);
    _cleanup_free_ char *wait = fleet_job_wait (job, news);
    json_t *o = json_object ();
    json_set_string (o, "session_id", kube_own_annotation (job, "session"));
    json_set_string (o, "status", state);
    json_set_string (o, "waits_for", wait);
    json_set_string (o, "capsule_name", kube_own_annotation (job, "name"));
    json_set_string (o, "capsule_version", kube_own_annotation (job, "version"));
    json_set_string (o, "job", fleet_job_meta (job, "name"));
    json_set_string (o, "kind", fleet_kind_name (fleet_job_kind (job)));
    json_set_string (o, "root", kube_own_label (job, "root"));
    json_set_string (o, "parent", kube_own_label (job, "parent"));
    json_set_string (o, "spawned_by", kube_own_annotation (job, "parent-session"));
    json_set_string (o, "delegation_id", kube_own_annotation (job, "delegation"));
    json_set_string (o, "formation_id", kube_own_annotation (job, "formation"));
    json_set_string (o, "member", kube_own_annotation (job, "member"));
    json_set_string (o, "started_at", fleet_job_meta (job, "creationTimestamp"));
    return o;
}

static void
print_row (const json_t *job)
{
    _cleanup_free_ char *state = fleet_job_state (job);
    _cleanup_free_ char *capsule = x_asprintf ("%s@%s", or_dash (kube_own_annotation (job, "name")),
                                               or_dash (kube_own_annotation (job, "version")));
    const char *member = kube_own_annotation (job, "member");
    out_printf ("%-36s  %-24s  %-12s  %-24s  %-24s  %-20s  %s\n",
                or_dash (kube_own_annotation (job, "session")), capsule, state,
                or_dash (kube_own_label (job, "root")), or_dash (fleet_job_meta (job, "name")),
                or_dash (fleet_job_meta (job, "creationTimestamp")), or_dash (member));
}

static void
report_waits (const struct fleet_view *v, const json_t *news)
{
    size_t i;
    json_t *job;
    json_array_foreach (v->items, i, job)
    {
        _cleanup_free_ char *wait = fleet_job_wait (job, news);
        _cleanup_buf_ struct buf shown = { 0 };
        if (! wait)
            continue;
        buf_append_printable (&shown, wait, strlen (wait), PRINTABLE_HEX);
        diag_stderr_line ("waiting: %s — %s", fleet_job_meta (job, "name"), shown.data);
    }
}

/* An empty list looks the same in a namespace that is not there. */
static void
note_none (const struct fleet_view *v)
{
    if (fleet_view_has_space (v))
        diag_note ("no sessions in namespace %s; --namespace names another", v->space);
    else
        diag_note ("there is no namespace %s: name another by --namespace", v->space);
}

int
fleet_sessions_list (const struct cli_args *args, struct mur_error **err)
{
    size_t i;
    json_t *job;
    _cleanup_fleet_view_ struct fleet_view v = { 0 };
    if (! open_view (args, &v, err))
        return CLI_FAILED;
    _cleanup_json_ json_t *news = fleet_news (&v);
    if (! cli_has (args, "--json")) {
        out_printf ("%-36s  %-24s  %-12s  %-24s  %-24s  %-20s  %s\n", "SESSION", "CAPSULE",
                    "STATUS", "ROOT", "JOB", "STARTED", "MEMBER");
        json_array_foreach (v.items, i, job) print_row (job);
        report_waits (&v, news);
        if (! json_array_size (v.items))
            note_none (&v);
        return CLI_OK;
    }
    _cleanup_json_ json_t *answer = json_object ();
    json_t *sessions = json_array ();
    json_array_foreach (v.items, i, job) json_array_append_new (sessions, describe (job, news));
    json_object_set_new (answer, "sessions", sessions);
    _cleanup_free_ char *text = json_pretty (answer, JSON_TEXT_ORDERED);
    out_printf ("%s\n", text);
    return CLI_OK;
}

/* --- stop --- */

int
fleet_sessions_stop (const struct cli_args *args, const char *session, struct mur_error **err)
{
    _cleanup_fleet_view_ struct fleet_view v = { 0 };
    const json_t *job = open_view (args, &v, err) ? fleet_view_find (&v, session, err) : NULL;
    if (! job || ! fleet_view_delete (&v, job, err))
        return CLI_FAILED;
    out_printf ("stopped: %s (%s %s)\n", or_dash (kube_own_annotation (job, "session")),
                fleet_kind_name (fleet_job_kind (job)), fleet_job_meta (job, "name"));
    return CLI_OK;
}

/* --- its door --- */

/* As a running record, of no process of this machine and no records here. */
static void
fill (struct running_entry *e, const json_t *job, struct fleet_door *door)
{
    e->path = x_strdup ("");
    e->liveness = RUNNING_HELD;
    e->record = (struct running_record){
        .session_id = x_strdup (kube_own_annotation (job, "session")),
        .url = steal_ptr (&door->url),
        .process_start = x_strdup (""),
        .capsule_name = x_strdup (or_dash (kube_own_annotation (job, "name"))),
        .capsule_version = x_strdup (or_dash (kube_own_annotation (job, "version"))),
        .workdir = x_strdup (""),
        .records_dir = x_strdup (""),
        .started_at = x_strdup (or_dash (fleet_job_meta (job, "creationTimestamp"))),
        .door_token = steal_ptr (&door->token),
    };
}

const struct running_entry *
fleet_sessions_session (const struct cli_args *args, const char *address,
                        struct http_client *client, struct running_scan *scan,
                        struct mur_error **err)
{
    if (! cli_has (args, "--fleet"))
        return running_session (address, scan, err);
    struct fleet_door door = { 0 };
    _cleanup_fleet_view_ struct fleet_view v = { 0 };
    const json_t *job = open_view (args, &v, err) ? fleet_view_find (&v, address, err) : NULL;
    if (! job || ! fleet_door_open (&v, job, client, &door, err))
        return NULL;
    scan->entries = x_new0 (struct running_entry);
    scan->len = 1;
    fill (&scan->entries[0], job, &door);
    return &scan->entries[0];
}
