/* SPDX-License-Identifier: Apache-2.0
 *
 * Launching an agent: from the bound door to session_end (spec/session.md 4.1, 15.1). See launch.h.
 *
 * The order is what other processes see: whoever has read the URL finds a trace that begins, a door
 * that answers, the launch's own task and a SIGTERM that tears down cleanly.
 */
#include "session/launch.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/fdio.h"
#include "door/tasks/intake.h"
#include "door/tasks/tasks.h"
#include "home/running.h"
#include "sandbox/host/host.h"
#include "session/commands/background.h"
#include "session/commands/confine.h"
#include "session/grants.h"
#include "session/guests/guests.h"
#include "session/handoff/delegations.h"
#include "session/handoff/member_calls.h"
#include "session/hooks/hooks.h"
#include "session/launch/completion_report.h"
#include "session/launch/export.h"
#include "session/launch/launch_script.h"
#include "session/launch/lost_commands.h"
#include "session/launch/retention.h"
#include "session/launch/roost_session.h"
#include "session/launch/start_line.h"
#include "session/launch/termination.h"
#include "session/loop/loop.h"
#include "session/model/controller.h"
#include "session/state/deadline.h"
#include "session/state/session.h"
#include "session/task/task_text.h"
#include "session/toolbox/murmur_md.h"
#include "spawn/child/lifeline.h"
#include "spawn/formation/membership.h"

#include <fcntl.h>
#include <string.h>

/* --- the door --- */

static void
list_visible_tools (const struct session *s, struct strv *out)
{
    for (size_t i = 0; i < s->kit.artifact_count; i++) {
        const struct staged_artifact *a = &s->kit.artifacts[i];
        if ((a->role == ROLE_TOOL || a->role == ROLE_SKILL) && ! a->is_prompt)
            strv_push (out, a->full_name);
    }
}

static void
set_planes (struct session *s)
{
    const struct containment *c = host_decide (s->asked->decision);
    const struct plane_facts facts = {
        .exports = s->manifest->exports,
        .work = s->places.work,
        .containment = containment_name (c->achieved),
        .follows_links = c->achieved != CONTAINMENT_SCOPED,
        .registry = s->registry,
        .trace = s->trace,
    };
    door_set_planes (s->door, &facts, s->id.text);
}

static bool
serve (struct session *s, struct mur_error **err)
{
    _cleanup_strv_ struct strv tools = { 0 };
    list_visible_tools (s, &tools);
    const struct exports *exports = s->manifest->exports;
    struct card_facts facts = {
        .capsule_name = s->manifest->name,
        .capsule_version = s->manifest->version,
        .session_id = s->id.text,
        .port = door_port (s->door),
        .tools = (const char *const *)tools.items,
        .tool_count = tools.len,
        .has_shell = s->policy->shell_allow.len > 0,
        .has_network = s->policy->network_allow.len > 0,
        .exports_files = exports && exports->files,
        .exports_peer_files = exports && exports->peer_files,
        .accepts_peer_tasks = exports && exports->peer_tasks && exports->peer_tasks->accept.value,
        .has_harness = s->harness != NULL,
        .acceptance = (enum task_acceptance)s->policy->lifecycle.task_acceptance.value,
    };
    set_planes (s);
    controller_serve (s);
    if (s->auth)
        door_set_auth (s->door, s->auth);
    return door_serve (s->door, &facts, s->registry, err);
}

/* Commands first, then children (door.md 7.5). */
static void
append_residue (void *ctx, const char *task_id, json_t *items)
{
    struct session *s = ctx;
    background_append_residue (s, task_id, items);
    delegations_append_residue (s->delegations, task_id, items);
}

static void
make_registry (struct session *s)
{
    struct registry_spec spec = {
        .acceptance = (enum task_acceptance)s->policy->lifecycle.task_acceptance.value,
        .queue_depth = (unsigned)s->policy->lifecycle.queue_depth.value,
        .is_public = ! s->auth,
        .is_threaded = s->policy->lifecycle.conversation.value == CONVERSATION_THREADED,
    };
    s->registry = registry_new (&spec);
    if (s->policy->spawn_allow.len)
        s->delegations = delegations_new (s);
    s->member_calls = member_calls_new (s);
    registry_set_completions (s->registry, delegations_take_completion, s->delegations);
    registry_set_residue (s->registry, append_residue, s);
}

/* The only file that holds the door's tokens. */
static void
fill_tokens (const struct door_auth *auth, struct running_record *r)
{
    r->door_token = secret_copy (door_auth_token (auth, 0));
    r->credential_count = door_auth_count (auth) - 1;
    r->credentials = x_new_array (struct running_credential, r->credential_count + 1);
    for (size_t i = 0; i < r->credential_count; i++)
        r->credentials[i] =
            (struct running_credential){ x_strdup (door_auth_name (auth, i + 1)),
                                         secret_copy (door_auth_token (auth, i + 1)) };
}

static char *
copy_of (const char *text)
{
    return text ? x_strdup (text) : NULL;
}

static void
fill_membership (const struct membership *m, struct running_record *r)
{
    if (! m)
        return;
    const char *start;
    r->formation_member = x_strdup (membership_member (m));
    r->formation_entry = membership_is_entry (m);
    r->formation_lifeline = lifeline_fd (LIFELINE_FORMATION) >= 0;
    r->launcher_pid = membership_launcher (m, &start);
    r->launcher_start = copy_of (start);
}

static void
write_running_record (struct session *s)
{
    struct running_record r = { 0 };
    running_record_fill_self (&r);
    r.session_id = x_strdup (s->id.text);
    r.url = x_strdup (door_url (s->door));
    r.capsule_name = x_strdup (s->manifest->name);
    r.capsule_version = x_strdup (s->manifest->version);
    r.workdir = x_strdup (s->places.work_path);
    r.records_dir = x_strdup (s->places.dirs.records_path);
    r.formation_id = copy_of (s->asked->formation_id);
    r.spawned_by = copy_of (s->asked->spawner->session_id);
    fill_membership (s->asked->membership, &r);
    if (s->auth)
        fill_tokens (s->auth, &r);
    _cleanup_error_ struct mur_error *err = NULL;
    if (! running_write (&r, &err)) {
        /* Whoever looks for the session later finds why it cannot be addressed. */
        _cleanup_free_ char *line =
            x_asprintf ("[capsule-runtime] warning[W-SEC-023]: %s\n", err->message);
        diag_warn (DIAG_RUNTIME, W_SEC_023, "%s", err->message);
        if (s->places.bootstrap_fd >= 0)
            (void)fd_write_all (s->places.bootstrap_fd, line, strlen (line));
    }
    running_record_clear (&r);
}

/* --- before the loop --- */

/* Diagnostics a closed stream refuses go here. */
static void
open_bootstrap_log (struct session *s)
{
    if (! fs_make_dirs (s->places.records, "logs", 0777, false, NULL))
        return;
    s->places.bootstrap_fd = fs_open_append (s->places.records, "logs/bootstrap.log", 0666, NULL);
    if (s->places.bootstrap_fd >= 0)
        diag_set_fallback (s->places.bootstrap_fd);
}

static unsigned
declared_port (const struct session *s)
{
    const struct door_network *network = s->manifest->network;
    return network && network->internal_port.is_set ? (unsigned)network->internal_port.value : 0;
}

static bool
open_door (struct session *s, struct mur_error **err)
{
    s->door = door_bind (s->asked->bind_addr, declared_port (s), err);
    if (! s->door || ! controller_begin (s, err))
        return false;
    murmur_md_write (s, door_url (s->door));
    guests_set_env (s, door_url (s->door));
    confine_set_env (s);
    return true;
}

static bool
begin (struct session *s, bool has_own, const struct launch_options *options,
       struct mur_error **err)
{
    if (! open_door (s, err))
        return false;
    s->trace = trace_writer_new (s->places.records, s->id.text, s->redactor, err);
    if (! s->trace)
        return false;
    export_start (s);
    if (! start_line_write (s, err))
        return false;
    retention_apply (s);
    make_registry (s);
    if (! serve (s, err))
        return false;
    if (! hooks_start (s, err)) {
        trace_writer_free (s->trace); /* the session never began: its records hold one line */
        s->trace = NULL;
        return false;
    }
    if (has_own) {
        struct task_intake intake = { .context_id = s->asked->context_id,
                                      .source = "task_md",
                                      .origin = ORIGIN_USER,
                                      .is_trusted = true,
                                      .forgets_session = s->asked->forgets_session };
        registry_enqueue (s->registry, &intake);
    }
    write_running_record (s);
    options->announce (options->ctx, s, door_url (s->door));
    host_probe_stop ();
    lost_commands_report (s);
    return termination_listen (s, err);
}

/* --- after the loop --- */

static void
refuse_queued (struct session *s)
{
    bool was_stopped = termination_cause (s) != NOT_TERMINATED;
    const struct task **tasks = NULL;
    size_t count = registry_close (s->registry, was_stopped, &tasks);
    for (size_t i = 0; i < count; i++)
        TRACE (s->trace, NULL, task_rejected, .task_id = tasks[i]->id,
               .context_id = tasks[i]->context_id, .source = tasks[i]->source,
               .cause = was_stopped ? "session_stopped" : "session_ended",
               .reason = was_stopped ? "the session was stopped before this task started"
                                     : "the session ended before this task started");
    free (tasks);
    /* What was cancelled while it was queued is recorded once nothing runs any more. */
    const struct task *task;
    while (registry_next (s->registry, 0, &task) == REGISTRY_CANCELED_QUEUED)
        loop_record_canceled (s, task);
}

static void
end_line (struct session *s, enum session_ending ending)
{
    const struct session_totals *t = &s->tally.totals;
    TRACE (s->trace, NULL, session_end, .total_turns = t->turns,
           .total_input_tokens = t->input_tokens, .total_output_tokens = t->output_tokens,
           .total_tool_calls = t->tool_calls, .total_shell_calls = t->shell_calls,
           .duration_ms = clock_monotonic_ms () - s->tally.launched_ms,
           .exit_status = session_ending_name (ending));
}

static void
tear_down (struct session *s, enum session_ending ending)
{
    if (s->registry)
        refuse_queued (s);
    hooks_end (s, session_ending_name (ending));
    if (s->trace)
        background_abandon_begin (s);
    if (s->confined)
        commands_kill_all (s->confined->commands);
    if (s->trace)
        background_abandon_end (s);
    confine_end (s);
    termination_settle (s);
    if (s->trace)
        end_line (s, ending);
    door_close (s->door);
    s->door = NULL;
    delegations_free (s->delegations);
    s->delegations = NULL;
    member_calls_free (s->member_calls);
    s->member_calls = NULL;
    export_end (s);
}

/* What others are owed once nothing runs any more; still bounded by the termination's timer. */
static void
settle (struct session *s, bool is_good)
{
    spawned_report (s, is_good);
    registered_end (s, is_good);
    running_remove (s->id.text);
    termination_disarm (s);
}

bool
launch_agent (struct session *s, const struct launch_options *options, enum session_ending *ending,
              struct mur_error **err)
{
    struct deadline deadline;
    struct launch_outcome outcome = { .ending = ENDING_OK };
    deadline_fill (s, &deadline);
    s->deadline = &deadline;
    s->tally.launched_ms = clock_monotonic_ms ();
    open_bootstrap_log (s);
    confine_warn_places (s);
    bool has_own = false;
    /* Armed first: a session that was told to end while it registered still deregisters. */
    if (termination_arm (s, &outcome.error) && registered_begin (s, &outcome.error) &&
        confine_start (s, &outcome.error)) {
        grants_record (s);
        has_own = task_text_import (s);
    }
    if (! outcome.error && begin (s, has_own, options, &outcome.error)) {
        loop_run (s, has_own, &outcome);
    } else {
        outcome.ending = ENDING_FAILED;
    }
    tear_down (s, outcome.ending);
    settle (s, ! outcome.error);
    *ending = outcome.ending;
    s->deadline = NULL;
    return outcome.error ? mur_propagate (err, outcome.error) : true;
}

bool
session_launch (struct session *s, const struct launch_options *options,
                enum session_ending *ending, struct mur_error **err)
{
    if (s->manifest->inference)
        return launch_agent (s, options, ending, err);
    confine_warn_places (s);
    return launch_script (s, options, ending, err);
}
