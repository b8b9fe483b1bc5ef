/* SPDX-License-Identifier: Apache-2.0
 *
 * Launching an agent: from the bound door to session_end (docs/spec/session.md 4.1, 15.1). See
 * launch.h.
 *
 * The order is what other processes see: whoever has read the URL finds a trace that begins, a
 * door that answers, the launch's own task and a SIGTERM that tears down cleanly.
 */
#include "session/launch.h"
#include "door/door.h"
#include "session/guests/guest_env.h"
#include "session/handoff/handoff.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/fdio.h"
#include "door/callers/auth.h"
#include "door/tasks/intake.h"
#include "door/tasks/registry.h"
#include "door/tasks/tasks.h"
#include "sandbox/host/host.h"
#include "session/commands/background.h"
#include "session/commands/confine.h"
#include "session/grants.h"
#include "session/guests/recording.h"
#include "session/handoff/delegations.h"
#include "session/harness/harness_walls.h"
#include "session/hooks/hooks.h"
#include "session/launch/completion_report.h"
#include "session/launch/export.h"
#include "session/launch/launch_parts.h"
#include "session/launch/launch_replay.h"
#include "session/launch/launch_script.h"
#include "session/launch/launched.h"
#include "session/launch/lost_commands.h"
#include "session/launch/retention.h"
#include "session/launch/roost_session.h"
#include "session/launch/running_record.h"
#include "session/launch/ship.h"
#include "session/launch/start_line.h"
#include "session/launch/termination.h"
#include "session/loop/loop.h"
#include "session/model/controller.h"
#include "session/served/served.h"
#include "session/servers/servers.h"
#include "session/stage/grants_report.h"
#include "session/stage/staged.h"
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
        .records = s->places.records,
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
        .public_url = s->asked->public_url,
        .tools = (const char *const *)tools.items,
        .tool_count = tools.len,
        .has_shell = s->policy->commands.allow.len > 0,
        .has_network = s->policy->network.allow.len > 0,
        .exports_files = exports && exports->files,
        .exports_peer_files = exports && exports->peer_files,
        .accepts_peer_tasks = exports && exports->peer_tasks && exports->peer_tasks->accept.value,
        .has_harness = s->rooms.harness != NULL,
        .acceptance = (enum task_acceptance)s->policy->lifecycle.task_acceptance.value,
    };
    set_planes (s);
    controller_serve (s);
    if (s->rooms.staged->auth)
        door_set_auth (s->door, s->rooms.staged->auth);
    served_at_door (s, s->rooms.staged->auth != NULL);
    return door_serve (s->door, &facts, s->registry, err);
}

/* Commands first, then children (door.md 7.5). */
static void
append_residue (void *ctx, const char *task_id, json_t *items)
{
    struct session *s = ctx;
    background_append_residue (s, task_id, items);
    delegations_append_residue (handoff_delegations (s), task_id, items);
}

static void
make_registry (struct session *s)
{
    launch_make_registry (s);
    handoff_begin (s);
    registry_set_completions (s->registry, delegations_take_completion, handoff_delegations (s));
    registry_set_residue (s->registry, append_residue, s);
}

/* --- before the loop --- */

static unsigned
declared_port (const struct session *s)
{
    const struct door_network *network = s->manifest->network;
    if (s->asked->bind_port)
        return s->asked->bind_port;
    return network && network->internal_port.is_set ? (unsigned)network->internal_port.value : 0;
}

static bool
open_door (struct session *s, struct mur_error **err)
{
    s->door = door_bind (s->asked->bind_addr, declared_port (s), err);
    if (! s->door || ! controller_begin (s, err))
        return false;
    murmur_md_write (s, door_url (s->door));
    guest_env_fill (s, door_url (s->door));
    confine_set_env (s);
    return true;
}

static bool
launch_begin (struct session *s, bool has_own, const struct launch_options *options,
              struct mur_error **err)
{
    if (! served_begin (s, err) || ! open_door (s, err))
        return false;
    s->trace = trace_writer_new (s->places.records, s->id.text, s->redactor, err);
    if (! s->trace)
        return false;
    export_start (s);
    if (! start_line_write (s, err) || ! recording_begin (s, door_url (s->door), err))
        return false;
    retention_apply (s);
    make_registry (s);
    if (! serve (s, err))
        return false;
    if (! servers_start (s, err))
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
                                      .forgets_session = s->asked->resume.forgets_session };
        registry_enqueue (s->registry, &intake);
    }
    running_record_begin (s);
    options->announce (options->ctx, s, door_url (s->door));
    host_probe_stop ();
    lost_commands_report (s);
    return termination_listen (s, err) && served_start (s, err);
}

/* --- after the loop --- */

static void
tear_down (struct session *s, struct launch_outcome *outcome)
{
    if (s->registry)
        launch_refuse_queued (s);
    served_end (s);
    hooks_end (s, session_ending_name (outcome->ending));
    if (s->trace)
        background_abandon_begin (s);
    servers_end (s);
    confine_kill_all (s);
    if (s->trace)
        background_abandon_end (s);
    confine_end (s);
    termination_settle (s);
    launch_write_end (s, outcome);
    recording_end (s);
    door_close (s->door);
    s->door = NULL;
    handoff_end (s);
    export_end (s);
}

/* What others are owed once nothing runs any more; still bounded by the termination's timer. */
static void
settle (struct session *s, const struct launch_outcome *outcome)
{
    bool is_good = ! outcome->error;
    completion_report_send (s, is_good);
    ship_end (s, session_ending_name (outcome->ending));
    roost_session_end (s, is_good);
    running_record_end (s);
    termination_disarm (s);
}

static bool
launch_agent (struct session *s, const struct launch_options *options, enum session_ending *ending,
              struct mur_error **err)
{
    struct launch_outcome outcome = { .ending = ENDING_OK };
    s->tally.launched_ms = clock_monotonic_ms ();
    launch_open_log (s);
    confine_warn_places (s);
    bool has_own = false;
    /* Armed first: a session that was told to end while it registered still deregisters. */
    if (termination_arm (s, &outcome.error) && ship_begin (s, &outcome.error) &&
        roost_session_begin (s, &outcome.error) && harness_walls_enter (s, &outcome.error) &&
        confine_start (s, &outcome.error)) {
        grants_record (s);
        has_own = task_text_import (s);
    }
    if (! outcome.error && launch_begin (s, has_own, options, &outcome.error)) {
        loop_run (s, has_own, &outcome);
    } else {
        outcome.ending = ENDING_FAILED;
    }
    tear_down (s, &outcome);
    settle (s, &outcome);
    *ending = outcome.ending;
    options->ended (options->ctx, *ending);
    return outcome.error ? mur_propagate (err, outcome.error) : true;
}

struct streams *
session_streams (const struct session *s)
{
    return s->registry ? registry_streams (s->registry) : NULL;
}

bool
session_answer (struct session *s, const char *task_id, const char *question_id, const char *text,
                char **why)
{
    _cleanup_json_ json_t *data =
        question_id ? json_pack ("{s:s}", "question_id", question_id) : NULL;
    const struct caller caller = { .credential = AUTH_OPERATOR };
    const struct message_intake intake = { .task_id = task_id,
                                           .text = text,
                                           .data = data,
                                           .by = "terminal",
                                           .message_id = id_new ("msg_").text,
                                           .part_kinds = "t",
                                           .origin = ORIGIN_USER };
    struct route_result routed;
    registry_route (s->registry, &caller, &intake, &routed);
    bool is_taken = routed.outcome == ROUTE_CONTINUED;
    *why = steal_ptr (&routed.why);
    route_result_clear (&routed);
    return is_taken;
}

struct launch_counts
session_counts (const struct session *s)
{
    const struct tally *t = &s->tally;
    return (struct launch_counts){ t->totals.turns,
                                   t->totals.input_tokens,
                                   t->totals.output_tokens,
                                   clock_monotonic_ms () - t->launched_ms,
                                   s->cause == TERMINATED_BY_TERMINAL,
                                   s->cause == TERMINATED_BY_SIGNAL };
}

const char *
session_id_text (const struct session *s)
{
    return s->id.text;
}

bool
session_launch (struct session *s, const struct launch_options *options,
                enum session_ending *ending, struct mur_error **err)
{
    launched_new (s);
    bool is_good = s->asked->player         ? launch_replay (s, options, ending, err)
                   : s->manifest->inference ? launch_agent (s, options, ending, err)
                                            : launch_script (s, options, ending, err);
    launched_free (s);
    return is_good;
}
