/* SPDX-License-Identifier: Apache-2.0
 *
 * Tool calls of a turn. See tool_calls.h.
 */
#include "session/loop/tool_calls.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "door/tasks/streams.h"
#include "door/tasks/tasks.h"
#include "session/calls/dispatch.h"
#include "session/calls/gate.h"
#include "session/hooks/hooks.h"
#include "session/state/deadline.h"
#include "session/state/session.h"
#include "session/task/attempt_end.h"

#include <string.h>

static void
trace_tool_call (struct session *s, struct running_task *t, const struct gated_call *c,
                 const struct call_outcome *o, uint64_t duration_ms)
{
    const struct trace_block *trace = s->manifest->trace;
    bool keeps_output = trace && trace->capture == CAPTURE_CONTENT;
    TRACE (s->trace, NULL, tool_call, .turn = c->turn, .task_id = t->task->id, .tool_name = c->name,
           .tool_call_id = c->id[0] ? c->id : NULL, .input = c->input_text,
           .input_bytes = strlen (c->input_text),
           .output = keeps_output ? (o->text.data ? o->text.data : "") : NULL,
           .output_bytes = o->text.len, .duration_ms = duration_ms,
           .status = o->status == TOOL_PASSED ? "ok" : "error", .error = o->runtime_error,
           .state_effect = o->state_effect, .resource_id = o->resource_id);
    t->counts.tool_calls++;
    s->tally.totals.tool_calls++;
}

static void
trace_skill_call (struct session *s, struct running_task *t, const struct gated_call *c,
                  const struct call_outcome *o, uint64_t duration_ms)
{
    bool is_runtime = o->skill_origin == LOCK_RUNTIME;
    TRACE (s->trace, NULL, skill_call, .turn = c->turn, .task_id = t->task->id,
           .skill_name = c->name, .output_bytes = o->text.len, .duration_ms = duration_ms,
           .status = o->status == TOOL_PASSED ? "ok" : "error",
           .origin = is_runtime ? "runtime" : "operator",
           .trust = is_runtime ? "untrusted" : "trusted");
}

/* A finished command, or one that went to the background; it counts once either way. */
void
tool_call_trace_shell (struct session *s, struct running_task *t, uint64_t turn,
                       const struct shell_facts *f)
{
    struct mur_error *err = NULL;
    if (f->is_detached) {
        if (! TRACE (s->trace, &err, shell_detached, .turn = turn, .task_id = t->task->id,
                     .work_id = f->work_id, .binary = f->binary, .command = f->command,
                     .grace_ms = f->grace_ms))
            TRACE (s->trace, NULL, shell_detach_unrecorded, .turn = turn, .task_id = t->task->id,
                   .work_id = f->work_id, .binary = f->binary, .reason = err ? err->message : "");
        mur_error_free (err);
    } else {
        TRACE (s->trace, NULL, shell, .turn = turn, .task_id = t->task->id, .binary = f->binary,
               .command = f->command, .exit_code = TRACE_NUM (f->exit_code),
               .stdout_bytes = f->stdout_bytes, .stderr_bytes = f->stderr_bytes,
               .duration_ms = f->duration_ms, .resource_limit = f->resource_limit);
    }
    t->counts.shell_calls++;
    s->tally.totals.shell_calls++;
}

/* What a watcher sees of the call: exactly what the model reads. */
static void
show_call (struct session *s, const struct running_task *t, const struct gated_call *c,
           const struct call_outcome *o, uint64_t duration_ms)
{
    struct stream_artifact artifact = {
        .tool_name = c->name,
        .content = o->text.data ? o->text.data : "",
        .fence_source = o->fence_source,
        .call_id = c->id[0] ? c->id : NULL,
        .is_error = o->status != TOOL_PASSED,
        .has_duration = true,
        .duration_ms = duration_ms,
        .truncated = o->is_truncated,
        .has_exit_code = o->has_shell && ! o->shell.is_detached,
        .exit_code = o->shell.exit_code,
    };
    streams_artifact (registry_streams (s->registry), t->task, &artifact);
}

/* --- one call --- */

static void
run_call (struct session *s, struct running_task *t, const struct gated_call *c,
          struct call_outcome *o)
{
    uint64_t started_us = clock_monotonic_us ();
    if (gate_has_required (s, c, o) && gate_may_run (s, t, c, o))
        dispatch_call (s, t, c->name, c->input, c->input_text, o);
    if (o->is_refused)
        return;
    uint64_t duration_ms = (clock_monotonic_us () - started_us) / 1000;
    if (o->is_dispatched)
        deadline_give_notice (s, c->name, t->task->id, &o->text);
    hooks_tell_call (s, t, c->turn, c->name, c->input_text, o, duration_ms);
    if (o->is_skill)
        trace_skill_call (s, t, c, o, duration_ms);
    else
        trace_tool_call (s, t, c, o, duration_ms);
    if (o->has_shell && ! o->shell.is_detached)
        hooks_tell_shell (s, t, c->turn, &o->shell);
    if (o->has_shell)
        tool_call_trace_shell (s, t, c->turn, &o->shell);
    show_call (s, t, c, o, duration_ms);
}

bool
tool_calls_run (struct session *s, struct running_task *t, const json_t *content, uint64_t turn,
                struct message_list *results)
{
    for (size_t i = 0; i < json_array_size (content); i++) {
        const json_t *block = json_array_get (content, i);
        if (! str_eq (json_get_string (block, "type"), "tool_call"))
            continue;
        const char *id = json_get_string (block, "id"), *name = json_get_string (block, "name");
        const json_t *input = json_object_get (block, "input");
        _cleanup_free_ char *input_text = json_text (input, JSON_TEXT_SORTED);
        struct gated_call c = { turn, id ? id : "", name ? name : "", input, input_text };
        _cleanup_outcome_ struct call_outcome o = { 0 };
        run_call (s, t, &c, &o);
        if (attempt_take_refusals (s, t))
            return false;
        if (t->fatal) {
            attempt_error (s, t, steal_ptr (&t->fatal), TRACE_NUM (turn));
            return false;
        }
        if (o.is_canceled || cancel_is_raised (t->cancel)) {
            attempt_cancel (s, t, t->end.wait_phase ? t->end.wait_phase : "turn",
                            TRACE_NUM (t->counts.turns));
            return false;
        }
        message_list_add (results, message_new_tool (c.id, o.status != TOOL_PASSED,
                                                     o.text.data ? o.text.data : "", o.text.len,
                                                     o.fence_source));
    }
    return true;
}
