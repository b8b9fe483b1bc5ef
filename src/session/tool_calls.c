/* SPDX-License-Identifier: Apache-2.0
 *
 * Tool calls of a turn. See tool_calls.h.
 */
#include "session/tool_calls.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "door/streams.h"
#include "session/deadline.h"
#include "session/dispatch.h"
#include "session/ending.h"
#include "session/hooks.h"
#include "session/read_only.h"
#include "session/shell.h"

#include <string.h>

/* One call as the model asked for it. */
struct call {
    uint64_t turn;
    const char *id; /* "" when the model gave none */
    const char *name;
    const json_t *input;
    char *input_text;
};

static void
trace_tool_call (struct session *s, struct running_task *t, const struct call *c,
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
    t->tool_calls++;
    s->totals.tool_calls++;
}

static void
trace_skill_call (struct session *s, struct running_task *t, const struct call *c,
                  const struct call_outcome *o, uint64_t duration_ms)
{
    bool is_runtime = o->skill_origin == LOCK_RUNTIME;
    TRACE (s->trace, NULL, skill_call, .turn = c->turn, .task_id = t->task->id,
           .skill_name = c->name, .output_bytes = o->text.len, .duration_ms = duration_ms,
           .status = "ok", .origin = is_runtime ? "runtime" : "operator",
           .trust = is_runtime ? "untrusted" : "trusted");
}

/* A finished command, or one that went to the background; it counts once either way. */
static void
trace_shell (struct session *s, struct running_task *t, const struct call *c,
             const struct shell_facts *f)
{
    struct mur_error *err = NULL;
    if (f->is_detached) {
        if (! TRACE (s->trace, &err, shell_detached, .turn = c->turn, .task_id = t->task->id,
                     .work_id = f->work_id, .binary = f->binary, .command = f->command,
                     .grace_ms = f->grace_ms))
            TRACE (s->trace, NULL, shell_detach_unrecorded, .turn = c->turn, .task_id = t->task->id,
                   .work_id = f->work_id, .binary = f->binary, .reason = err ? err->message : "");
        mur_error_free (err);
    } else {
        TRACE (s->trace, NULL, shell, .turn = c->turn, .task_id = t->task->id, .binary = f->binary,
               .command = f->command, .exit_code = TRACE_NUM (f->exit_code),
               .stdout_bytes = f->stdout_bytes, .stderr_bytes = f->stderr_bytes,
               .duration_ms = f->duration_ms, .resource_limit = f->resource_limit);
    }
    t->shell_calls++;
    s->totals.shell_calls++;
}

/* What a watcher sees of the call: exactly what the model reads. */
static void
show_call (struct session *s, const struct running_task *t, const struct call *c,
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

/* --- required fields --- */

/* A refusal names every missing field at once. True when the call may run. */
static bool
check_required (struct session *s, struct running_task *t, const struct call *c,
                struct call_outcome *o)
{
    struct tool_entry *tool = (struct tool_entry *)(uintptr_t)session_tool (s, c->name);
    if (! tool || tool->is_skill)
        return true;
    if (tool->is_schema_malformed) {
        if (! tool->is_warned)
            diag_warn (DIAG_RUNTIME, W_RUN_004,
                       "the input_schema of tool %s is malformed; its calls are not checked",
                       c->name);
        tool->is_warned = true;
        return true;
    }
    _cleanup_strv_ struct strv missing = { 0 };
    for (size_t i = 0; i < tool->required.len; i++)
        if (! json_object_get (c->input, tool->required.items[i]))
            strv_push (&missing, tool->required.items[i]);
    if (! missing.len)
        return true;
    _cleanup_free_ char *names = strv_join (&missing, ", ");
    outcome_set_error (o, "the call to %s lacks required input: %s; nothing ran", c->name, names);
    TRACE (s->trace, NULL, tool_input_refused, .turn = c->turn, .tool_name = c->name,
           .tool_call_id = c->id[0] ? c->id : NULL, .missing = missing.items,
           .reason = o->runtime_error);
    (void)t;
    return false;
}

/* --- protected paths --- */

/* True when the call may run. A refusal is the runtime's own text and the only thing recorded; one
 * that cannot be traced ends the session. */
static bool
check_read_only (struct session *s, struct running_task *t, const struct call *c,
                 struct call_outcome *o)
{
    struct read_only_hit hit = { 0 };
    if (! read_only_hits (s, session_tool (s, c->name), c->input, &hit))
        return true;
    outcome_set_error (o,
                       "%s was refused: %s lies under the read-only path %s (%s). Nothing ran, and "
                       "other ways to write there are refused too.",
                       c->name, hit.path[0] ? hit.path : ".", hit.rule, hit.signal);
    o->is_refused = true;
    struct mur_error *err = NULL;
    if (! TRACE (s->trace, &err, protected_path_denied, .turn = c->turn,
                 .call = shell_is_offered (s, c->name) ? "shell" : "tool", .target = c->name,
                 .path = hit.path, .rule = hit.rule, .signal = hit.signal,
                 .reason = o->runtime_error))
        t->fatal = err;
    read_only_hit_clear (&hit);
    return false;
}

/* --- one call --- */

static void
run_call (struct session *s, struct running_task *t, const struct call *c, struct call_outcome *o)
{
    uint64_t started_us = clock_monotonic_us ();
    if (check_required (s, t, c, o) && check_read_only (s, t, c, o) &&
        hooks_allow (s, t, c->turn, c->name, c->input, c->input_text, o))
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
        trace_shell (s, t, c, &o->shell);
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
        struct call c = { turn, id ? id : "", name ? name : "", input, input_text };
        _cleanup_outcome_ struct call_outcome o = { 0 };
        run_call (s, t, &c, &o);
        if (attempt_take_refusals (s, t))
            return false;
        if (t->fatal) {
            attempt_error (s, t, steal_ptr (&t->fatal), TRACE_NUM (turn));
            return false;
        }
        if (o.is_canceled || cancel_is_raised (t->cancel)) {
            attempt_cancel (s, t, t->wait_phase ? t->wait_phase : "turn", TRACE_NUM (t->turns));
            return false;
        }
        message_list_add (results, message_new_tool (c.id, o.status != TOOL_PASSED,
                                                     o.text.data ? o.text.data : "", o.text.len,
                                                     o.fence_source));
    }
    return true;
}
