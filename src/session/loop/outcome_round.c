/* SPDX-License-Identifier: Apache-2.0 */
#include "session/loop/outcome_round.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "door/tasks/streams.h"
#include "door/tasks/tasks.h"
#include "replay/play/play_task.h"
#include "session/handoff/child_question.h"
#include "session/handoff/delegation_round.h"
#include "session/handoff/delegations.h"
#include "session/handoff/handoff.h"
#include "session/handoff/member_calls.h"
#include "session/handoff/member_round.h"
#include "session/loop/attempt.h"
#include "session/state/session.h"
#include "session/task/attempt_end.h"
#include "session/task/restart.h"

static bool
holds_any (struct session *s)
{
    return delegations_held (handoff_delegations (s)) ||
           (handoff_member_calls (s) && member_calls_count (handoff_member_calls (s)));
}

/* --- waiting --- */

static void
wake (void *ctx)
{
    struct session *s = ctx;
    if (handoff_delegations (s))
        delegations_poke (handoff_delegations (s));
    member_calls_poke (handoff_member_calls (s));
}

static void
announce (struct session *s, const struct running_task *t, size_t delegations, size_t calls)
{
    _cleanup_buf_ struct buf text = { 0 };
    buf_puts (&text, "waiting for ");
    if (delegations)
        buf_printf (&text, "delegate-task: %zu delegation%s outstanding", delegations,
                    delegations == 1 ? "" : "s");
    if (calls)
        buf_printf (&text, "%scall-member: %zu call%s outstanding", delegations ? "; " : "", calls,
                    calls == 1 ? "" : "s");
    streams_working (registry_streams (s->registry), t->task, text.data, 0);
}

/* True when nothing is out any more, false when the task was stopped. */
static bool
wait_for_all (struct session *s, struct running_task *t)
{
    size_t said = 0;
    uint64_t seen = 0, seen_calls = 0, listener = cancel_add (t->cancel, wake, s);
    while (! cancel_is_raised (t->cancel)) {
        size_t delegations = delegations_out (handoff_delegations (s));
        size_t calls = member_calls_out (handoff_member_calls (s));
        if (! delegations && ! calls)
            break;
        if (delegations + calls != said)
            announce (s, t, delegations, calls);
        said = delegations + calls;
        bool was_mine = loop_lock_pause (&s->loop_lock);
        if (delegations)
            delegations_sleep (handoff_delegations (s), &seen);
        else
            member_calls_sleep (handoff_member_calls (s), &seen_calls);
        child_questions_pass (s, t, handoff_delegations (s));
        loop_lock_resume (&s->loop_lock, was_mine);
    }
    cancel_remove (t->cancel, listener);
    return ! cancel_is_raised (t->cancel);
}

/* --- going on, or not --- */

/* Where there is a conversation the outcomes are its next message; else the task begins anew with
 * them. */
static bool
tell (struct session *s, struct running_task *t, const struct buf *outcomes,
      const struct buf *answers)
{
    if (! attempt_can_continue (s, t))
        return (! outcomes->len || restart_with (s, t, RESTART_DELEGATIONS, outcomes->data)) &&
               (! answers->len || restart_with (s, t, RESTART_MEMBERS, answers->data));
    _cleanup_buf_ struct buf text = { 0 };
    buf_append (&text, outcomes->data ? outcomes->data : "", outcomes->len);
    if (outcomes->len && answers->len)
        buf_puts (&text, "\n\n");
    buf_append (&text, answers->data ? answers->data : "", answers->len);
    attempt_continue_with (s, t, text.data ? text.data : "", NULL);
    return true;
}

static bool
go_on (struct session *s, struct running_task *t, uint64_t waited_ms)
{
    _cleanup_buf_ struct buf outcomes = { 0 }, answers = { 0 };
    _cleanup_json_ json_t *delegations = json_array (), *calls = json_array ();
    delegations_deliver (handoff_delegations (s), delegations, &outcomes);
    member_calls_deliver (handoff_member_calls (s), &s->fence_word, calls, &answers);
    _cleanup_free_ char *delegation_ids = json_text (delegations, JSON_TEXT_ORDERED);
    _cleanup_free_ char *call_ids = json_text (calls, JSON_TEXT_ORDERED);
    uint64_t left = attempt_turns_left (s, t);
    TRACE (s->trace, NULL, task_continued, .task_id = t->task->id,
           .continuation_number = ++t->counts.continuations, .member_calls = call_ids,
           .delegations = delegation_ids, .waited_ms = waited_ms,
           .turns_remaining = { left != UINT64_MAX, (int64_t)left });
    t->onward.continued_stopped_by = NULL;
    return tell (s, t, &outcomes, &answers);
}

static const char *
reason_of_end (const struct running_task *t, uint64_t turns_left)
{
    return t->end.ending == ATTEMPT_CANCELED ? "the task was canceled"
           : t->end.ending != ATTEMPT_OK     ? "the task failed"
           : ! turns_left                    ? "inference.max_turns left no turn to hear of it"
                                             : "the task ended";
}

/* --- of a record --- */

/* True when the record goes on past this turn end by something that came from outside. */
static bool
goes_on (const struct player *p, const struct running_task *t)
{
    const struct rec_task *then = player_task (p);
    return then && t->counts.continuations < then->continued;
}

/* Outcomes came in here then: true when they are told again and the task goes on. */
static bool
continue_as_then (struct session *s, struct running_task *t)
{
    struct player *p = s->asked->player;
    _cleanup_buf_ struct buf text = { 0 };
    if (t->end.ending != ATTEMPT_OK || ! goes_on (p, t) || ! attempt_turns_left (s, t) ||
        ! player_next_user_text (p, t->counts.turns, t->list.len, &text))
        return false;
    uint64_t left = attempt_turns_left (s, t);
    TRACE (s->trace, NULL, task_continued, .task_id = t->task->id,
           .continuation_number = ++t->counts.continuations, .member_calls = "[]",
           .delegations = "[]", .turns_remaining = { left != UINT64_MAX, (int64_t)left });
    t->onward.continued_stopped_by = NULL;
    attempt_continue_with (s, t, text.data ? text.data : "", NULL);
    return true;
}

bool
outcome_round_continue (struct session *s, struct running_task *t)
{
    if (s->asked->player)
        return continue_as_then (s, t);
    if (! holds_any (s))
        return false;
    uint64_t left = attempt_turns_left (s, t), from_ms = clock_monotonic_ms ();
    bool may_go_on = t->end.ending == ATTEMPT_OK && left;
    if (may_go_on && attempt_let_answer_stand (s, t) && wait_for_all (s, t))
        return go_on (s, t, clock_monotonic_ms () - from_ms);
    if (may_go_on) /* stopped: in the wait, or before it began */
        attempt_cancel (s, t,
                        delegations_out (handoff_delegations (s)) ? "delegation" : "member_call",
                        TRACE_NO_NUM);
    delegations_end (handoff_delegations (s), reason_of_end (t, left));
    member_calls_abandon (handoff_member_calls (s));
    return false;
}
