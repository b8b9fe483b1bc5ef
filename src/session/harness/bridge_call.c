/* SPDX-License-Identifier: Apache-2.0 */
#include "session/harness/bridge_call.h"

#include "base/alloc.h"
#include "door/tasks/tasks.h"
#include "session/calls/approvals.h"
#include "session/calls/call_line.h"
#include "session/calls/dispatch.h"
#include "session/calls/gate.h"
#include "session/hooks/hook_events.h"
#include "session/state/deadline.h"
#include "session/state/refused.h"
#include "session/state/running_task.h"
#include "session/state/session.h"

static void
record_shell (struct session *s, struct running_task *t, const struct call *c,
              const struct call_outcome *o)
{
    if (! o->has_shell)
        return;
    if (! o->shell.is_detached)
        hooks_tell_shell (s, t, c->turn, &o->shell);
    call_line_shell (s, t, c->turn, &o->shell);
}

void
bridge_call_run (struct session *s, struct running_task *t, const char *name, const json_t *input,
                 struct cancel *abandon, struct cancel *stop, struct bridge_answer *out)
{
    _cleanup_free_ char *input_text = json_text (input, JSON_TEXT_SORTED);
    const struct call call = {
        .turn = t->counts.turns,
        .id = "",
        .name = name,
        .input = input,
        .input_text = input_text,
        .abandon = abandon,
        .stop = stop,
    };
    _cleanup_outcome_ struct call_outcome o = { 0 };
    if (gate_has_required (s, &call, &o) && gate_may_run (s, t, &call, &o) &&
        approvals_allow (s, t, &call, &o)) {
        dispatch_call (s, t, &call, &o);
        record_shell (s, t, &call, &o);
        if (o.is_dispatched)
            deadline_give_notice (s, name, t->task->id, &o.text);
    }
    approvals_end (s, &o);
    refused_record (s, t->task->id, call.turn, name);
    /* A call of the harness's cannot end the session. */
    mur_error_freep (&t->fatal);
    t->fatal = NULL;
    out->is_error = o.status != TOOL_PASSED;
    buf_append (&out->text, o.text.data ? o.text.data : "", o.text.len);
}

json_t *
bridge_tool_list (const struct session *s)
{
    json_t *list = json_array ();
    for (size_t i = 0; i < s->kit.tool_count; i++) {
        const struct tool_entry *t = &s->kit.tools[i];
        json_t *tool = json_object (), *schema = json_loads (t->parameters, 0, NULL);
        json_set_string (tool, "name", t->name);
        if (t->description)
            json_set_string (tool, "description", t->description);
        json_object_set_new (tool, "inputSchema", schema ? schema : json_object ());
        json_array_append_new (list, tool);
    }
    return list;
}
