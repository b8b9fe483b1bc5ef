/* SPDX-License-Identifier: Apache-2.0 */
#include "session/loop/tool_calls.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "door/tasks/tasks.h"
#include "session/calls/approvals.h"
#include "session/calls/call_line.h"
#include "session/calls/dispatch.h"
#include "session/calls/gate.h"
#include "session/calls/played_call.h"
#include "session/guests/recording.h"
#include "session/hooks/hook_events.h"
#include "session/state/deadline.h"
#include "session/state/refused.h"
#include "session/state/session.h"
#include "session/task/attempt_end.h"

#include <string.h>

/* --- one call --- */

/* A hook refuses before a person is asked; what a person said of a call that runs again is in its
 * record. */
static bool
may_run (struct session *s, struct running_task *t, const struct call *c, struct call_outcome *o)
{
    return gate_has_input (c, o) && gate_has_required (s, c, o) && gate_may_run (s, t, c, o) &&
           (s->asked->player || approvals_allow (s, t, c, o));
}

void
tool_call_run (struct session *s, struct running_task *t, const struct call *c,
               struct call_outcome *o)
{
    uint64_t started_us = clock_monotonic_us ();
    recording_call (s, c->turn);
    bool is_free = may_run (s, t, c, o);
    if (! o->is_refused && ! played_call (s, t, c, is_free, o) && is_free) {
        started_us = clock_monotonic_us ();
        dispatch_call (s, t, c, o);
    }
    approvals_end (s, o);
    if (o->is_refused)
        return;
    const struct staged_artifact *a = session_artifact (s, c->name);
    bool has_run = o->is_dispatched;
    played_call_over (s, t, c, o);
    recording_call_over (s, has_run, a && a->component);
    uint64_t duration_ms = (clock_monotonic_us () - started_us) / 1000;
    if (o->is_dispatched && ! s->asked->player)
        deadline_give_notice (s, c->name, t->task->id, &o->text);
    hooks_tell_call (s, t, c, o, duration_ms);
    call_line_write (s, t, c, o, duration_ms);
    refused_record (s, t->task->id, c->turn, c->name);
    if (o->has_shell && ! o->shell.is_detached)
        hooks_tell_shell (s, t, c->turn, &o->shell);
    if (o->has_shell)
        call_line_shell (s, t, c->turn, &o->shell);
    call_line_show (s, t, c, o, duration_ms);
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
        struct call c = { .turn = turn,
                          .id = id ? id : "",
                          .name = name ? name : "",
                          .input = input,
                          .input_text = input_text,
                          .input_error = json_get_string (block, "input_error") };
        _cleanup_outcome_ struct call_outcome o = { 0 };
        tool_call_run (s, t, &c, &o);
        if (attempt_take_refusals (s, t))
            return false;
        if (t->fatal) {
            attempt_error (s, t, steal_ptr (&t->fatal));
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
