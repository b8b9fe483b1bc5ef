/* SPDX-License-Identifier: Apache-2.0 */
#include "session/harness/bridge_call.h"

#include "base/alloc.h"
#include "door/tasks/tasks.h"
#include "replay/play/player.h"
#include "session/calls/approvals.h"
#include "session/calls/call_line.h"
#include "session/calls/dispatch.h"
#include "session/calls/gate.h"
#include "session/guests/recording.h"
#include "session/harness/harness.h"
#include "session/hooks/hook_events.h"
#include "session/state/deadline.h"
#include "session/state/refused.h"
#include "session/state/running_task.h"
#include "session/state/session.h"

#include <string.h>

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

/* --- what is kept --- */

static uint64_t
keep_call (struct session *s, const char *name, const char *input_text)
{
    uint64_t n = s->rooms.harness->calls++;
    struct tape *tape = recording_tape (s);
    if (! tape)
        return n;
    _cleanup_free_ char *clean = redactor_apply (s->redactor, input_text);
    json_t *line = json_object ();
    json_set_u64 (line, "n", n);
    json_set_string (line, "name", name);
    tape_put (tape, line, "text", clean, strlen (clean));
    tape_write (tape, "harness_call", line);
    return n;
}

static void
keep_result (struct session *s, uint64_t n, const struct call_outcome *o, bool is_free)
{
    struct tape *tape = recording_tape (s);
    if (! tape)
        return;
    _cleanup_free_ char *clean = redactor_apply (s->redactor, o->text.data ? o->text.data : "");
    json_t *line = json_object ();
    json_set_u64 (line, "n", n);
    json_set_bool (line, "ok", o->status == TOOL_PASSED);
    json_set_bool (line, "refused", ! is_free);
    tape_put (tape, line, "made", clean, strlen (clean));
    tape_write (tape, "harness_result", line);
}

/* --- the call --- */

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
    uint64_t n = keep_call (s, name, input_text);
    bool is_free = gate_has_required (s, &call, &o) && gate_may_run (s, t, &call, &o);
    if (is_free && approvals_allow (s, t, &call, &o)) {
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
    keep_result (s, n, &o, is_free);
}

void
bridge_call_played (struct session *s, const struct rec_harness_item *item,
                    const struct call_outcome *gates, bool is_free)
{
    _cleanup_buf_ struct buf text = { 0 };
    _cleanup_outcome_ struct call_outcome served = { .status =
                                                         item->is_good ? TOOL_PASSED : TOOL_ERROR };
    const struct record *then = player_record (s->asked->player);
    if (! recording_tape (s) || ! record_fetch (then, &item->text, &text, NULL) ||
        ! record_fetch (then, &item->made, &served.text, NULL))
        return;
    uint64_t n = keep_call (s, item->name, text.data ? text.data : "");
    keep_result (s, n, is_free ? &served : gates, is_free);
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
