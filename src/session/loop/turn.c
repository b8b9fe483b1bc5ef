/* SPDX-License-Identifier: Apache-2.0 */
#include "session/loop/turn.h"

#include "artifact/names/name.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "door/tasks/streams.h"
#include "door/tasks/tasks.h"
#include "session/commands/confine.h"
#include "session/hooks/hook_events.h"
#include "session/loop/compaction.h"
#include "session/loop/going.h"
#include "session/loop/played_task.h"
#include "session/loop/tool_calls.h"
#include "session/model/inference_line.h"
#include "session/model/selection.h"
#include "session/state/session.h"
#include "session/task/attempt_end.h"

#include <string.h>

/* --- before the call --- */

static uint64_t
estimate_request (struct running_task *t, struct request *request)
{
    if (! t->occupancy.has_provider_count || t->occupancy.provider_choice != t->choice.driver)
        return request_tokens (request, &t->list);
    uint64_t total = t->occupancy.provider_count;
    for (size_t i = t->occupancy.provider_len; i < t->list.len; i++)
        total += message_tokens (t->list.items[i]);
    return total;
}

/* --- endings of a turn --- */

/* The refusal of a hook's call was recorded when it was refused. */
static bool
end_spend_refused (struct session *s, struct running_task *t, const struct spend_refusal *r,
                   bool is_recorded)
{
    if (! is_recorded)
        TRACE (s->trace, NULL, spend_ceiling_reached, .turn = t->counts.turns,
               .task_id = t->task->id, .limit = spend_limit_name (r->limit), .ceiling = r->ceiling,
               .used = r->used, .requested = r->requested);
    attempt_end_spend (s, t, r);
    return false;
}

static bool
end_failed_call (struct session *s, struct running_task *t, struct request *request,
                 struct driver_answer *a)
{
    inference_line_failed (s, t, request, a);
    if (a->outcome == DRIVER_FAILED)
        attempt_fail (s, t, a->cause, a->reason, a->retry_note, TRACE_NUM (t->counts.turns));
    else
        attempt_error (s, t, steal_ptr (&a->error));
    return false;
}

/* Concatenated text blocks, one a line. Owned. */
static char *
answer_text (const json_t *content)
{
    struct buf out = { 0 };
    bool has_text = false;
    for (size_t i = 0; i < json_array_size (content); i++) {
        const json_t *block = json_array_get (content, i);
        const json_t *text = json_object_get (block, "text");
        if (! str_eq (json_get_string (block, "type"), "text") || ! json_is_string (text))
            continue;
        if (has_text)
            buf_putc (&out, '\n');
        has_text = true;
        buf_append (&out, json_string_value (text), json_string_length (text));
    }
    return buf_steal (&out);
}

/* The answer as a message; it says who made it where there is more than one who could have. */
static struct message *
answer_message (const struct session *s, const struct running_task *t, const json_t *content)
{
    struct message *m = message_new_assistant (content);
    const struct choice *d = t->choice.driver;
    if (s->choices.count > 1)
        message_set_producer (m, name_bare (d->artifact->full_name), d->model);
    return m;
}

/* Adds the answer to the list and the record. */
static void
keep_answer (struct session *s, struct running_task *t, const json_t *content, bool is_truncated)
{
    struct message *m = answer_message (s, t, content);
    m->is_truncated = is_truncated;
    message_list_add (&t->list, m);
    if (t->held.continuation_id)
        t->held.acknowledged = t->list.len;
    if (t->record)
        conversation_append (t->record, &t->list);
}

/* A driver that showed nothing while it ran still shows its answer. */
static void
show_answer (struct session *s, struct running_task *t, const char *answer, bool has_streamed)
{
    hooks_show_artifacts (s, t);
    if (! has_streamed)
        streams_text (registry_streams (s->registry), t->task, answer, strlen (answer), true);
}

static bool
end_complete (struct session *s, struct running_task *t, const json_t *content, bool has_streamed)
{
    keep_answer (s, t, content, false);
    _cleanup_free_ char *answer = answer_text (content);
    attempt_complete (s, t, answer);
    show_answer (s, t, answer, has_streamed);
    return false;
}

static bool
end_truncated (struct session *s, struct running_task *t, const json_t *content, bool has_streamed)
{
    keep_answer (s, t, content, true);
    _cleanup_free_ char *answer = answer_text (content);
    _cleanup_free_ char *text =
        x_asprintf ("%s%s[The reply was cut at inference.max_tokens (%llu tokens).]", answer,
                    answer[0] ? "\n\n" : "", (unsigned long long)t->choice.output_cap);
    if (going_first_cut (s))
        diag_warn (DIAG_RUNTIME, W_RUN_001,
                   "the reply was cut at inference.max_tokens (%llu tokens)",
                   (unsigned long long)t->choice.output_cap);
    attempt_complete (s, t, text);
    show_answer (s, t, text, has_streamed);
    return false;
}

/* --- after a response --- */

/* What the provider holds is what it was sent. An answer that calls tools is sent with their
 * results; one that ends the task is counted as held (keep_answer). */
static void
take_continuation (struct running_task *t, struct driver_answer *a)
{
    free (t->held.continuation_id);
    t->held.continuation_id = steal_ptr (&a->continuation_id);
    t->held.continuation_choice = t->choice.driver;
    t->held.acknowledged = t->held.continuation_id ? t->list.len : 0;
}

/* What session-status shows. A call that reported one member alone is a reported one. */
static void
count_usage (struct session *s, const struct usage *u)
{
    usage_count_add (&s->tally.usage.input, u->input.is_set, (uint64_t)u->input.value);
    usage_count_add (&s->tally.usage.output, u->output.is_set, (uint64_t)u->output.value);
    usage_count_add (&s->tally.usage.cached, u->cached.is_set, (uint64_t)u->cached.value);
    usage_count_add (&s->tally.usage.cache_write, u->cache_write.is_set,
                     (uint64_t)u->cache_write.value);
    if (! u->input.is_set && ! u->output.is_set && ! u->cached.is_set && ! u->cache_write.is_set)
        s->tally.usage.unreported_calls++;
}

/* Occupancy, and the provider's count for the next estimate. */
static void
measure (struct session *s, struct running_task *t, const struct driver_answer *a,
         uint64_t estimate)
{
    const struct usage *u = &a->usage;
    count_usage (s, u);
    t->occupancy.is_known = true;
    t->occupancy.is_actual = a->has_report;
    if (! a->has_report) {
        t->occupancy.tokens = estimate + a->tokens;
        t->occupancy.has_provider_count = false;
        return;
    }
    t->occupancy.provider_count =
        (uint64_t)(u->input.value + u->cached.value + u->cache_write.value + u->output.value);
    t->occupancy.has_provider_count = true;
    t->occupancy.provider_choice = t->choice.driver;
    t->occupancy.provider_len = t->list.len + 1; /* the answer is the completion */
    t->occupancy.tokens = t->occupancy.provider_count;
}

static void
count_turn (struct session *s, struct running_task *t, uint64_t input, uint64_t output)
{
    t->counts.turns++;
    t->counts.input_tokens += input;
    t->counts.output_tokens += output;
    s->tally.totals.turns++;
    s->tally.totals.input_tokens += input;
    s->tally.totals.output_tokens += output;
}

static bool
has_tool_call (const json_t *content)
{
    for (size_t i = 0; i < json_array_size (content); i++)
        if (str_eq (json_get_string (json_array_get (content, i), "type"), "tool_call"))
            return true;
    return false;
}

/* Why an input could not be read was told in its call's result; no driver is sent it again. */
static void
drop_input_errors (json_t *content)
{
    for (size_t i = 0; i < json_array_size (content); i++)
        json_object_del (json_array_get (content, i), "input_error");
}

/* The calls of the turn, then everything of the turn into the list at once. */
static bool
run_calls (struct session *s, struct running_task *t, json_t *content, uint64_t turn)
{
    _cleanup_messages_ struct message_list results = { 0 };
    if (! tool_calls_run (s, t, content, turn, &results))
        return false;
    drop_input_errors (content);
    message_list_add (&t->list, answer_message (s, t, content));
    for (size_t i = 0; i < results.len; i++)
        message_list_add (&t->list, results.items[i]);
    results.len = 0;
    if (t->record)
        conversation_append (t->record, &t->list);
    return ! attempt_decline (s, t);
}

static bool
follow_response (struct session *s, struct running_task *t, struct driver_answer *a, uint64_t turn)
{
    const char *stop = json_get_string (a->body, "stop_reason");
    json_t *content = json_object_get (a->body, "content");
    if (str_eq (stop, "tool_call") && has_tool_call (content))
        return run_calls (s, t, content, turn);
    if (str_eq (stop, "end_turn"))
        return end_complete (s, t, content, a->has_streamed);
    if (str_eq (stop, "max_tokens"))
        return end_truncated (s, t, content, a->has_streamed);
    _cleanup_free_ char *reason =
        str_eq (stop, "tool_call")
            ? x_strdup ("the driver answered tool_call without a tool_call block")
            : x_asprintf ("the driver answered with an unknown stop reason \"%s\"",
                          stop ? stop : "");
    _cleanup_free_ char *clean = redactor_apply (s->redactor, reason);
    attempt_fail (s, t, "malformed_response", clean, NULL, TRACE_NUM (turn));
    return false;
}

static void
show_working (struct session *s, const struct running_task *t)
{
    char text[48];
    snprintf (text, sizeof (text), "inference turn %llu", (unsigned long long)t->counts.turns + 1);
    streams_working (registry_streams (s->registry), t->task, text, 0);
}

/* What this call uses is read once; a continuation another choice holds is none of this one's. */
static void
choose (struct session *s, struct running_task *t, struct request *request)
{
    if (s->asked->player) {
        played_controls (s, t);
        played_turn (s, t);
    }
    selection_take (s, t->task->id, t->counts.turns, &t->choice);
    const struct choice *d = t->choice.driver;
    const struct request_reader reader = request_reader_of (s, d, d->model);
    request_set_reader (request, &reader);
    if (t->held.continuation_id && t->held.continuation_choice != d) {
        free (t->held.continuation_id);
        t->held.continuation_id = NULL;
        t->held.acknowledged = 0;
    }
}

bool
turn_run (struct session *s, struct running_task *t, struct request *request)
{
    if (cancel_is_raised (t->cancel)) {
        attempt_cancel (s, t, "turn", TRACE_NUM (t->counts.turns));
        return false;
    }
    if (t->end.input_timed_out) {
        attempt_fail (s, t, "input_timeout", "input-timeout", NULL, TRACE_NUM (t->counts.turns));
        return false;
    }
    struct mur_error *full = NULL;
    if (! confine_check_size (s, &full)) {
        attempt_error (s, t, full);
        return false;
    }
    choose (s, t, request);
    request_build (request, &t->list, t->held.continuation_id ? t->held.acknowledged : 0,
                   t->choice.output_cap, t->held.continuation_id);
    uint64_t estimate = estimate_request (t, request);
    if (attempt_take_refusals (s, t))
        return false;
    show_working (s, t);

    _cleanup_answer_ struct driver_answer a = { 0 };
    driver_call (s, t, request, estimate, &a);
    if (a.outcome == DRIVER_SPEND_REFUSED)
        return end_spend_refused (s, t, &a.refusal, false);
    if (a.outcome == DRIVER_CANCELED) {
        attempt_cancel (s, t, "inference", TRACE_NUM (t->counts.turns));
        return false;
    }
    if (a.body)
        hooks_tell_inference (s, t, request, &a, estimate);
    if (a.outcome != DRIVER_RESPONSE)
        return end_failed_call (s, t, request, &a);

    uint64_t turn = t->counts.turns;
    _cleanup_error_ struct mur_error *err = NULL;
    if (! inference_line_answered (s, t, request, &a, estimate, &err)) {
        if (! attempt_take_refusals (s, t))
            attempt_error (s, t, steal_ptr (&err));
        return false;
    }
    count_turn (s, t, estimate, a.tokens);
    take_continuation (t, &a);
    measure (s, t, &a, estimate);
    switch (compaction_after_turn (s, t, request, turn)) {
    case COMPACTION_FAILED:
        return false;
    case COMPACTION_REFUSED:
        return end_spend_refused (s, t, &t->refusal.why, true);
    case COMPACTION_NONE:
    case COMPACTION_DONE:
        break;
    }
    return follow_response (s, t, &a, turn);
}
