/* SPDX-License-Identifier: Apache-2.0 */
#include "session/plan/plan_step.h"

#include "base/words.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "sandbox/run/command.h"
#include "session/calls/approvals.h"
#include "session/calls/dispatch.h"
#include "session/calls/gate.h"
#include "session/commands/native.h"
#include "session/commands/refusals_told.h"
#include "session/commands/shell.h"
#include "session/handoff/delegate.h"
#include "session/plan/plan_capsule.h"
#include "session/plan/plan_command.h"
#include "session/plan/plan_refs.h"
#include "session/state/command_line.h"
#include "session/state/loop_lock.h"
#include "session/state/running_task.h"
#include "session/state/session.h"

#include <string.h>

#define KILL_WAIT_MS 5000

static void
set_status (struct plan_step *step, enum step_status status)
{
    step->status = status;
    if (status == STEP_SUCCEEDED) {
        free (step->error);
        step->error = NULL;
    }
}

static void
fail_step (struct plan_step *step, const char *error)
{
    set_status (step, STEP_FAILED);
    free (step->error);
    step->error = x_strdup (error);
}

static bool
is_canceled (const struct step_run *run)
{
    return cancel_is_raised (run->task->cancel);
}

void
step_run_clear (struct step_run *run)
{
    free (run->tool);
    free (run->line);
    json_decref (run->call);
    command_unref (run->command);
    call_outcome_clear (&run->gates);
    *run = (struct step_run){ 0 };
}

/* --- the command of a shell step --- */

static void
name_command (struct step_run *run)
{
    _cleanup_free_ char *command = NULL;
    if (! plan_command_read (run->step, run->step->sent, &run->tool, &command))
        return;
    run->line = command_line_text (run->tool, command);
    run->call = json_object ();
    json_set_string (run->call, "command", command);
}

static void
start_command (struct step_run *run)
{
    struct session *s = run->session;
    _cleanup_error_ struct mur_error *err = NULL;
    const struct call call = { .name = run->tool, .nest = run->nest };
    _cleanup_outcome_ struct call_outcome facts = { 0 };
    run->step->attempts++;
    if (confine_check_size (s, &err))
        run->command = shell_start (s, &call, json_get_string (run->call, "command"), &facts, &err);
    if (run->command)
        return;
    _cleanup_free_ char *text = x_asprintf ("%s did not start: %s", run->tool, err->message);
    fail_step (run->step, text);
    /* Nothing may run in a root that could not be composed: the session ends. */
    if (err->code == E_RUN_014 && ! run->task->fatal)
        run->task->fatal = steal_ptr (&err);
}

static void
take_command_result (struct step_run *run)
{
    struct plan_step *step = run->step;
    struct command_result r = command_look (run->command);
    size_t out_len, err_len;
    if (r.exit_code == 0) {
        free (step->output);
        step->output = native_stream_text (&r.out, &out_len);
        set_status (step, STEP_SUCCEEDED);
        return;
    }
    _cleanup_free_ char *complaint = native_stream_text (&r.err, &err_len);
    _cleanup_free_ char *said = native_stream_text (&r.out, &out_len);
    _cleanup_buf_ struct buf text = { 0 };
    if (err_len)
        buf_puts (&text, complaint);
    else
        buf_printf (&text, "exit code %d", r.exit_code);
    _cleanup_strv_ struct strv lines = { 0 };
    const struct refused_command told = { run->tool, json_get_string (run->call, "command"), said,
                                          complaint, &r };
    refusals_tell (run->session, &told, &text, &lines);
    fail_step (step, text.data);
}

static void
wait_for_command (struct step_run *run)
{
    loop_lock_release (&run->session->loop_lock);
    bool has_ended = command_wait (run->command, -1, run->task->cancel);
    loop_lock_take (&run->session->loop_lock);
    if (has_ended) {
        take_command_result (run);
    } else {
        command_kill (run->command);
        command_wait (run->command, KILL_WAIT_MS, NULL);
        fail_step (run->step, "stopped: the task was cancelled");
    }
    command_unref (run->command);
    run->command = NULL;
}

/* --- a tool step --- */

static void
take_tool_result (struct plan_step *step, struct call_outcome *o)
{
    free (step->state_effect);
    free (step->resource_id);
    step->state_effect = steal_ptr (&o->state_effect);
    step->resource_id = steal_ptr (&o->resource_id);
    const char *text = o->text.data ? o->text.data : "";
    if (o->status != TOOL_PASSED) {
        fail_step (step, o->runtime_error ? o->runtime_error : text);
        return;
    }
    free (step->output);
    step->output = x_strdup (text);
    set_status (step, STEP_SUCCEEDED);
}

static void
call_tool (struct step_run *run)
{
    struct plan_step *step = run->step;
    _cleanup_outcome_ struct call_outcome o = { 0 };
    _cleanup_free_ char *text = json_text (step->sent, JSON_TEXT_SORTED);
    const struct call call = { .id = "",
                               .name = step->name,
                               .input = step->sent,
                               .input_text = text,
                               .nest = run->nest,
                               .is_plan_step = true };
    step->attempts++;
    dispatch_call (run->session, run->task, &call, &o);
    if (is_canceled (run))
        fail_step (step, "stopped: the task was cancelled");
    else
        take_tool_result (step, &o);
}

/* --- a capsule step --- */

static void
start_capsule (struct step_run *run)
{
    if (run->session->policy->spawn_allow.len) {
        step_capsule_start (run);
        return;
    }
    run->step->attempts++;
    fail_step (run->step, "this capsule does not declare capabilities.spawn.allow");
}

static void
wait_for_capsule (struct step_run *run)
{
    struct plan_step *step = run->step;
    _cleanup_delegate_result_ struct delegate_result r;
    step_capsule_finish (run, &r);
    if (r.status == DELEGATE_COMPLETED) {
        free (step->output);
        step->output = x_strdup (r.output ? r.output : "");
        set_status (step, STEP_SUCCEEDED);
        return;
    }
    _cleanup_free_ char *error =
        x_asprintf ("%s: %s", delegate_status_name (r.status), r.output ? r.output : "");
    fail_step (step, error);
}

/* --- the gates --- */

/* The tool a step is a call of. */
static const char *
tool_of (const struct step_run *run)
{
    return run->step->kind == STEP_CAPSULE ? "delegate-task"
           : run->step->kind == STEP_SHELL ? run->tool
                                           : run->step->name;
}

static bool
passes_gates (struct step_run *run)
{
    struct running_task *t = run->task;
    struct plan_step *step = run->step;
    const json_t *input = step->kind == STEP_TOOL ? step->sent : run->call;
    _cleanup_free_ char *text = json_text (input, JSON_TEXT_SORTED);
    struct call_outcome *gates = &run->gates;
    approvals_end (run->session, gates);
    call_outcome_clear (gates);
    const struct call call = { .turn = run->session->rooms.harness || ! t->counts.turns
                                           ? t->counts.turns
                                           : t->counts.turns - 1,
                               .id = "",
                               .name = tool_of (run),
                               .input = input,
                               .input_text = text,
                               .is_plan_step = true };
    if (gate_may_run (run->session, t, &call, gates) &&
        gate_has_required (run->session, &call, gates)) {
        run->is_disapproved = ! approvals_allow (run->session, t, &call, gates);
        if (! run->is_disapproved)
            return true;
    }
    step->attempts++;
    fail_step (step, gates->runtime_error ? gates->runtime_error : "refused");
    return false;
}

void
step_admit (struct step_run *run)
{
    struct plan_step *step = run->step;
    step->sent = step->input ? plan_substitute (run->plan, step->input) : json_object ();
    if (step->kind == STEP_SHELL)
        name_command (run);
    if (step->kind == STEP_CAPSULE)
        run->call = step_delegation (run->session, step, step->sent);
    run->is_admitted = passes_gates (run);
}

void
step_begin (struct step_run *run)
{
    struct plan_step *step = run->step;
    run->started_us = clock_monotonic_us ();
    if (run->is_admitted && step->kind == STEP_SHELL)
        start_command (run);
    if (run->is_admitted && step->kind == STEP_CAPSULE)
        start_capsule (run);
}

/* True when the step failed and may be tried again. */
static bool
tries_again (const struct step_run *run)
{
    const struct plan_step *step = run->step;
    return step->status == STEP_FAILED && step->attempts && step->attempts <= step->retries &&
           ! is_canceled (run) && ! run->task->fatal && ! run->is_disapproved;
}

/* One attempt, the gates first; the first attempt's were asked when the step began. */
static void
run_once (struct step_run *run)
{
    struct plan_step *step = run->step;
    bool is_admitted = run->is_admitted || passes_gates (run);
    run->is_admitted = false;
    if (! is_admitted)
        return;
    if (step->kind == STEP_TOOL) {
        call_tool (run);
    } else if (step->kind == STEP_SHELL) {
        if (! run->command)
            start_command (run);
        if (run->command)
            wait_for_command (run);
    } else {
        if (! run->capsule)
            start_capsule (run);
        if (run->capsule)
            wait_for_capsule (run);
    }
}

void
step_finish (struct step_run *run)
{
    struct plan_step *step = run->step;
    if (step->status == STEP_PENDING && is_canceled (run) && ! run->command && ! run->capsule)
        step->status = STEP_SKIPPED;
    if (step->status == STEP_PENDING)
        run_once (run);
    while (tries_again (run))
        run_once (run);
    approvals_end (run->session, &run->gates);
    step->duration_ms = (clock_monotonic_us () - run->started_us) / 1000;
}
