/* SPDX-License-Identifier: Apache-2.0 */
#include "session/calls/gate.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "session/calls/read_only.h"
#include "session/commands/shell.h"
#include "session/hooks/hook_gate.h"
#include "session/state/running_task.h"
#include "session/state/session.h"
#include "session/toolbox/told.h"

bool
gate_has_input (const struct call *c, struct call_outcome *out)
{
    if (! c->input_error)
        return true;
    outcome_set_error (
        out,
        "the call to %s was not made: %s. Nothing ran; write the call again with one "
        "JSON object as its input.",
        c->name, c->input_error);
    return false;
}

bool
gate_has_required (struct session *s, const struct call *c, struct call_outcome *out)
{
    const struct tool_entry *tool = session_tool (s, c->name);
    if (! tool || tool->is_skill)
        return true;
    if (tool->is_schema_malformed) {
        if (told_note_warning (s, c->name))
            diag_warn (DIAG_RUNTIME, W_RUN_004,
                       "the input_schema of tool %s is malformed; its calls are not checked",
                       c->name);
        return true;
    }
    _cleanup_strv_ struct strv missing = { 0 };
    for (size_t i = 0; i < tool->required.len; i++)
        if (! json_object_get (c->input, tool->required.items[i]))
            strv_push (&missing, tool->required.items[i]);
    if (! missing.len)
        return true;
    _cleanup_free_ char *names = strv_join (&missing, ", ");
    outcome_set_error (out, "the call to %s lacks required input: %s; nothing ran", c->name, names);
    if (c->is_plan_step)
        return false;
    TRACE (s->trace, NULL, tool_input_refused, .turn = c->turn, .tool_name = c->name,
           .tool_call_id = c->id[0] ? c->id : NULL, .missing = missing.items,
           .reason = out->runtime_error);
    return false;
}

static bool
writes_no_protected_path (struct session *s, struct running_task *t, const struct call *c,
                          struct call_outcome *out)
{
    struct read_only_hit hit = { 0 };
    if (! read_only_hits (s, session_tool (s, c->name), c->input, &hit))
        return true;
    outcome_set_error (out,
                       "%s was refused: %s lies under the read-only path %s (%s). Nothing ran, and "
                       "other ways to write there are refused too.",
                       c->name, hit.path[0] ? hit.path : ".", hit.rule, hit.signal);
    out->is_refused = true;
    struct mur_error *err = NULL;
    if (! TRACE (s->trace, &err, protected_path_denied, .turn = c->turn,
                 .call = shell_is_offered (s, c->name) ? "shell" : "tool", .target = c->name,
                 .path = hit.path, .rule = hit.rule, .signal = hit.signal,
                 .reason = out->runtime_error))
        t->fatal = err;
    read_only_hit_clear (&hit);
    return false;
}

bool
gate_may_run (struct session *s, struct running_task *t, const struct call *c,
              struct call_outcome *out)
{
    return writes_no_protected_path (s, t, c, out) && hooks_allow (s, t, c, out);
}
