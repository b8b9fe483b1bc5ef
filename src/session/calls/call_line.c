/* SPDX-License-Identifier: Apache-2.0 */
#include "session/calls/call_line.h"

#include "door/tasks/streams.h"
#include "session/state/running_task.h"
#include "session/state/session.h"

#include <string.h>

static void
tool_line (struct session *s, struct running_task *t, const struct call *c,
           const struct call_outcome *o, uint64_t duration_ms)
{
    bool keeps_output = session_capture (s) >= CAPTURE_CONTENT;
    TRACE (s->trace, NULL, tool_call, .turn = c->turn, .task_id = t->task->id, .tool_name = c->name,
           .tool_call_id = c->id[0] ? c->id : NULL, .input = c->input_text,
           .input_bytes = c->input_bytes ? c->input_bytes : strlen (c->input_text),
           .output = keeps_output ? (o->text.data ? o->text.data : "") : NULL,
           .output_bytes = o->text.len, .duration_ms = duration_ms,
           .status = o->status == TOOL_PASSED ? "ok" : "error", .error = o->runtime_error,
           .state_effect = o->state_effect, .resource_id = o->resource_id, .by = c->by,
           .argv = c->argv, .traceparent_from_caller = c->traceparent, .server = o->server,
           .progress_count = o->server ? TRACE_NUM (o->progress_count) : TRACE_NO_NUM);
    t->counts.tool_calls++;
    s->tally.totals.tool_calls++;
}

static void
skill_line (struct session *s, struct running_task *t, const struct call *c,
            const struct call_outcome *o, uint64_t duration_ms)
{
    bool is_runtime = o->skill_origin == LOCK_RUNTIME;
    TRACE (s->trace, NULL, skill_call, .turn = c->turn, .task_id = t->task->id,
           .skill_name = c->name, .output_bytes = o->text.len, .duration_ms = duration_ms,
           .status = o->status == TOOL_PASSED ? "ok" : "error",
           .origin = is_runtime ? "runtime" : "operator",
           .trust = is_runtime ? "untrusted" : "trusted");
}

void
call_line_write (struct session *s, struct running_task *t, const struct call *c,
                 const struct call_outcome *o, uint64_t duration_ms)
{
    if (o->is_skill)
        skill_line (s, t, c, o, duration_ms);
    else
        tool_line (s, t, c, o, duration_ms);
}

void
call_line_shell (struct session *s, struct running_task *t, uint64_t turn,
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
               .duration_ms = f->duration_ms, .resource_limit = f->resource_limit,
               .refusals = f->refusals.items);
    }
    t->counts.shell_calls++;
    s->tally.totals.shell_calls++;
}

void
call_line_show (struct session *s, const struct running_task *t, const struct call *c,
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
