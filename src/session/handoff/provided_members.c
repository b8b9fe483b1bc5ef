/* SPDX-License-Identifier: Apache-2.0
 *
 * call-member and end-without-answer as the model calls them (docs/spec/spawn.md C8).
 */
#include "base/alloc.h"
#include "door/tasks/tasks.h"
#include "session/handoff/handoff.h"
#include "session/handoff/member_calls.h"
#include "session/state/outcome.h"
#include "session/state/provided.h"
#include "session/state/running_task.h"
#include "session/state/session.h"
#include "spawn/formation/membership.h"

#include <string.h>

static const char end_without_answer_parameters[] =
    "{\"properties\":{\"reason\":{\"description\":\"Why there is no answer; the member that called "
    "reads it.\",\"type\":\"string\"}},\"required\":[\"reason\"],\"type\":\"object\"}";

static bool
members_are_offered (const struct session *s)
{
    const struct membership *m = s->asked->launcher.membership;
    return s->manifest->inference && m && membership_callee_count (m) > 0;
}

static const char *
call_member_parameters (const struct session *s)
{
    const struct membership *m = s->asked->launcher.membership;
    json_t *callees = json_array ();
    for (size_t i = 0; i < membership_callee_count (m); i++)
        json_array_append_new (callees, json_string (membership_callee (m, i)));
    _cleanup_json_ json_t *o =
        json_pack ("{s:s, s:{s:{s:s, s:s, s:o}, s:{s:s, s:s}}, s:[s,s]}", "type", "object",
                   "properties", "member", "type", "string", "description", "The member to call.",
                   "enum", callees, "task", "type", "string", "description",
                   "What it is to do, complete in itself: it sees nothing of this conversation.",
                   "required", "member", "task");
    _cleanup_free_ char *text = json_text (o, JSON_TEXT_SORTED);
    return arena_strdup (s->arena, text);
}

static void
show_result (const char *member, const struct member_call_result *r, struct call_outcome *out)
{
    _cleanup_json_ json_t *o = json_object ();
    bool is_out = r->status == MEMBER_CALL_STARTED || r->status == MEMBER_CALL_BUSY;
    json_set_string (o, "call_id", r->call_id);
    json_set_string (o, "member", member);
    json_set_string (o, "status", member_call_status_name (r->status));
    json_set_string (o, r->task_id ? "task_id" : "output", r->task_id ? r->task_id : r->output);
    _cleanup_free_ char *text = json_text (o, JSON_TEXT_SORTED);
    outcome_set_result (out, "call-member", is_out ? TOOL_PASSED : TOOL_FAILED, text,
                        strlen (text));
    if (is_out)
        buf_printf (&out->text,
                    "\nEnd your turn when you have made every call: this task waits for the "
                    "answers and goes on with them in one message.");
}

static void
call_member (struct session *s, struct running_task *task, const json_t *input,
             struct call_outcome *out)
{
    const char *member = outcome_need_text ("call-member", input, "member", out);
    const char *text = member ? outcome_need_text ("call-member", input, "task", out) : NULL;
    if (! text)
        return;
    if (! task || ! handoff_member_calls (s)) {
        outcome_set_error (out, "call-member was called while no task is running");
        return;
    }
    _cleanup_free_ char *refusal = member_calls_refusal (handoff_member_calls (s), task, member);
    if (refusal) {
        outcome_set_error (out, "call-member: %s", refusal);
        return;
    }
    struct member_call_result result;
    refusal = member_calls_make (handoff_member_calls (s), task, member, text, &result);
    if (refusal && ! result.was_canceled) {
        outcome_set_error (out, "call-member: %s", refusal);
    } else if (result.was_canceled) {
        out->is_canceled = true;
        task->end.wait_phase = "member_call";
        outcome_set_error (out, "call-member: the task was stopped");
    } else {
        show_result (member, &result, out);
    }
    member_call_result_clear (&result);
}

static void
end_without_answer (struct session *s, struct running_task *task, const json_t *input,
                    struct call_outcome *out)
{
    const char *reason = outcome_need_text ("end-without-answer", input, "reason", out);
    if (! reason)
        return;
    const char *caller = task ? task->task->caller_member : NULL;
    if (! caller)
        outcome_set_error (out, "end-without-answer: no member asked for this task");
    else if (task->onward.declined)
        outcome_set_error (out, "end-without-answer: this task is ending already");
    else if (handoff_member_calls (s) && member_calls_count (handoff_member_calls (s)))
        outcome_set_error (out, "end-without-answer: a call to another member is still out");
    else {
        _cleanup_json_ json_t *o = json_object ();
        task->onward.declined = x_strdup (reason);
        json_set_string (o, "caller", caller);
        json_set_string (o, "status", "ending");
        _cleanup_free_ char *text = json_text (o, JSON_TEXT_SORTED);
        outcome_set_result (out, "end-without-answer", TOOL_PASSED, text, strlen (text));
    }
}

const struct provided_tool provided_call_member = {
    .name = "call-member",
    .description =
        "Hands a task to another member of this formation, which works on it beside you. Returns once "
        "the member holds its task, or is busy and will be asked again; never with its answer. Make "
        "every call you mean to, then end your turn: your task waits and goes on with the answers.",
    .parameters_of = call_member_parameters,
    .missing = "a formation that lets this member call another",
    .exists = members_are_offered,
    .call = call_member,
};

const struct provided_tool provided_end_without_answer = {
    .name = "end-without-answer",
    .description =
        "Ends the task another member asked for when there is no answer to give. Takes effect after "
        "the calls of this turn.",
    .parameters = end_without_answer_parameters,
    .missing = "a formation that lets this member call another",
    .exists = members_are_offered,
    .call = end_without_answer,
};
