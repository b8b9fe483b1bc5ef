/* SPDX-License-Identifier: Apache-2.0 */
#include "session/loop/task_run.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "door/tasks/intake.h"
#include "door/tasks/tasks.h"
#include "session/commands/background.h"
#include "session/guests/recording.h"
#include "session/handoff/handoff.h"
#include "session/handoff/member_calls.h"
#include "session/hooks/hook_task.h"
#include "session/loop/attempt.h"
#include "session/loop/done_check.h"
#include "session/loop/outcome_round.h"
#include "session/loop/played_task.h"
#include "session/loop/reopen.h"
#include "session/loop/seed.h"
#include "session/model/selection.h"
#include "session/state/refused.h"
#include "session/state/session.h"
#include "session/task/attempt_end.h"
#include "session/task/task_text.h"
#include "trace/lines/blobs.h"

#include <string.h>

void
task_outcome_clear (struct task_outcome *o)
{
    free (o->reason);
    mur_error_freep (&o->error);
    *o = (struct task_outcome){ 0 };
}

/* --- start --- */

static const char *
lane_of (enum task_origin origin)
{
    return origin == ORIGIN_USER ? "user" : origin == ORIGIN_PEER ? "peer" : "bg";
}

static void
raise_work (void *ctx)
{
    cancel_raise (ctx);
}

/* Bytes of the launch's own task, as it lies in the runtime directory. */
static uint64_t
file_bytes (struct session *s)
{
    struct stat st;
    return fs_exists (s->places.runtime, "task.md", &st) ? (uint64_t)st.st_size : 0;
}

/* What the agent was told, as it was said: what a replay tells it again. */
static void
keep_text (struct session *s, char sha[SHA256_HEX_LEN + 1])
{
    _cleanup_buf_ struct buf text = { 0 };
    if (session_capture (s) < CAPTURE_CONTENT || ! task_text_read (s, &text, NULL))
        return;
    sha256_hex (text.data, text.len, sha);
    if (! trace_blob_store (s->places.records, sha, text.data, text.len, NULL))
        sha[0] = '\0';
}

static void
start_lines (struct session *s, const struct task *task)
{
    bool is_from_door = str_eq (task->source, "a2a");
    char text_sha[SHA256_HEX_LEN + 1] = "";
    _cleanup_strv_ struct strv kinds = { 0 };
    for (const char *kind = task->part_kinds; kind && *kind; kind++)
        strv_push (&kinds, *kind == 't' ? "text" : "data");
    keep_text (s, text_sha);
    recording_task (s);
    TRACE (s->trace, NULL, task_start, .task_id = task->id, .context_id = task->context_id,
           .source = task->source, .origin = task_origin_name (task->origin),
           .trust = task->is_trusted ? "trusted" : "untrusted", .lane = lane_of (task->origin),
           .message_parts_bytes = is_from_door ? task->parts_bytes : file_bytes (s),
           .part_kinds = kinds.items, .reference_task_ids = task->references.items,
           .text_sha = text_sha[0] ? text_sha : NULL);
}

/* --- between attempts --- */

/* The decision and the mark happen under the lock the deadline cancels under, so that a finished
 * answer is never thrown away. True: the task goes on. */
static bool
keep_working (struct session *s, struct running_task *t)
{
    const struct keep_working *k = s->policy->lifecycle.keep_working;
    if (! k || t->end.ending != ATTEMPT_OK)
        return false;
    pthread_mutex_lock (&s->now.lock);
    const char *stop = t->counts.kept_working >= k->limit.value          ? "limit"
                       : ! attempt_turns_left (s, t)                     ? "max_turns"
                       : ! attempt_can_continue (s, t)                   ? "no_session"
                       : termination_cause (s) == TERMINATED_BY_DEADLINE ? "deadline"
                                                                         : NULL;
    bool goes_on = ! stop && ! cancel_is_raised (t->cancel);
    if (goes_on) {
        free (t->onward.standing_answer);
        t->onward.standing_answer = x_strdup (t->end.result);
        s->now.has_standing_answer = true;
    }
    pthread_mutex_unlock (&s->now.lock);
    t->onward.keep_working_stopped_by = stop;
    if (! goes_on)
        return false;
    t->counts.kept_working++;
    t->onward.continued_stopped_by = &t->onward.keep_working_stopped_by;
    uint64_t left = attempt_turns_left (s, t);
    TRACE (s->trace, NULL, keep_working, .task_id = t->task->id, .number = t->counts.kept_working,
           .limit = k->limit.value, .turns_remaining = { left != UINT64_MAX, (int64_t)left },
           .message_bytes = strlen (k->message));
    attempt_continue_with (s, t, k->message, NULL);
    return true;
}

/* A continued task that ran out of turns, money or time ends with the answer it already had. */
static bool
restore_standing (struct session *s, struct running_task *t)
{
    const char *stop = t->end.ending == ATTEMPT_MAX_TURNS       ? "max_turns"
                       : t->end.ending == ATTEMPT_SPEND_CEILING ? "spend_ceiling"
                       : t->end.is_spared                       ? "deadline"
                                                                : NULL;
    if (! t->onward.standing_answer || ! stop)
        return false;
    if (t->onward.continued_stopped_by)
        *t->onward.continued_stopped_by = stop;
    _cleanup_free_ char *answer = steal_ptr (&t->onward.standing_answer);
    free (t->end.reason);
    t->end.reason = NULL;
    attempt_complete (s, t, answer);
    return true;
}

static void
record_error (struct session *s, struct running_task *t)
{
    if (! t->end.error || t->end.has_failed_line)
        return;
    t->end.cause = "runtime_error";
    t->end.has_failed_line = true;
    TRACE (s->trace, NULL, task_failed, .task_id = t->task->id,
           .turn = { t->counts.turns > 0 && ! s->rooms.harness, (int64_t)t->counts.turns },
           .cause = t->end.cause, .reason = t->end.error->message);
}

/* To a turn end with nothing handed off outstanding, or another ending. */
static void
run_attempt (struct session *s, struct running_task *t)
{
    do {
        attempt_run (s, t);
        attempt_decline (s, t);
        attempt_take_refusals (s, t);
        record_error (s, t);
    } while (outcome_round_continue (s, t));
}

static void
run_attempts (struct session *s, struct running_task *t)
{
    do {
        run_attempt (s, t);
        while (! restore_standing (s, t) && (keep_working (s, t) || done_check_reopens (s, t)))
            run_attempt (s, t);
        record_error (s, t);
        restore_standing (s, t); /* the deadline may have come during the check */
    } while (reopen (s, t));
}

/* --- end --- */

static char *
keep_working_json (const struct session *s, const struct running_task *t)
{
    const struct keep_working *k = s->policy->lifecycle.keep_working;
    if (! k)
        return NULL;
    const char *stop = t->onward.keep_working_stopped_by;
    return x_asprintf ("{\"used\":%llu,\"limit\":%llu,\"stopped_by\":%s%s%s}",
                       (unsigned long long)t->counts.kept_working,
                       (unsigned long long)k->limit.value, stop ? "\"" : "", stop ? stop : "null",
                       stop ? "\"" : "");
}

static void
end_line (struct session *s, const struct running_task *t)
{
    _cleanup_free_ char *kept = keep_working_json (s, t);
    _cleanup_free_ char *check = done_check_json (s, t);
    TRACE (s->trace, NULL, task_end, .task_id = t->task->id,
           .exit_status = attempt_ending_name (t->end.ending),
           .duration_ms = clock_monotonic_ms () - t->started_ms, .turns = t->counts.turns,
           .input_tokens = t->counts.input_tokens, .output_tokens = t->counts.output_tokens,
           .tool_calls = t->counts.tool_calls, .shell_calls = t->counts.shell_calls,
           .reopen_count = t->counts.reopens, .keep_working = kept, .done_check = check);
}

static char *
status_text (const struct running_task *t)
{
    if (t->end.ending == ATTEMPT_CANCELED && t->harness.status_note)
        return x_asprintf ("task canceled; %s", t->harness.status_note);
    if (t->end.ending == ATTEMPT_OK || t->end.ending == ATTEMPT_CANCELED)
        return NULL; /* the state's own text */
    if (str_eq (t->end.cause, "input_timeout"))
        return x_strdup ("input-timeout");
    return x_asprintf ("task failed (%s): %s",
                       t->end.cause ? t->end.cause : attempt_ending_name (t->end.ending),
                       t->end.reason ? t->end.reason : "no reason was given");
}

/* What the task object says beside the state (door.md 6.2); NULL: nothing. */
static json_t *
metadata_of (const struct session *s, const struct running_task *t)
{
    json_t *running = background_running_json (s, t->task->id);
    bool is_without_answer = t->end.ending == ATTEMPT_NO_ANSWER;
    json_t *below = member_calls_take_below (handoff_member_calls (s));
    json_t *metadata = running || is_without_answer || below ? json_object () : NULL;
    if (below)
        json_object_set_new (metadata, "noAnswerBelow", below);
    if (is_without_answer)
        json_set_bool (metadata, "noAnswer", true);
    if (running)
        json_object_set_new (metadata, "runningCommands", running);
    return metadata;
}

static enum task_state
state_of (enum attempt_ending ending)
{
    return ending == ATTEMPT_OK         ? TASK_COMPLETED
           : ending == ATTEMPT_CANCELED ? TASK_CANCELED
                                        : TASK_FAILED;
}

/* The registry decides: a cancel the door accepted wins over what the loop came to, in every
 * record. */
static void
settle (struct session *s, struct running_task *t)
{
    if (registry_settle (s->registry, t->task, state_of (t->end.ending)) != TASK_CANCELED)
        return;
    if (t->end.ending != ATTEMPT_CANCELED)
        attempt_cancel_unspared (s, t, "turn", TRACE_NUM (t->counts.turns));
    result_write (s, t, "canceled: the task was stopped; there is no result");
}

static void
end_task (struct session *s, struct running_task *t)
{
    settle (s, t);
    /* Of commands that went on in the background. */
    refused_record (s, t->task->id, t->counts.turns, "");
    end_line (s, t);
    if (s->asked->player)
        played_task_over (s, t);
    hooks_task_end (s);
    _cleanup_free_ char *text = status_text (t);
    _cleanup_json_ json_t *metadata = metadata_of (s, t);
    struct task_ending ending = {
        .state = state_of (t->end.ending),
        .status_text = text,
        .response = t->end.ending == ATTEMPT_OK ? t->end.response : NULL,
        .metadata = metadata,
    };
    registry_end (s->registry, t->task, &ending);
}

static void
running_task_clear (struct running_task *t)
{
    conversation_freep (&t->record);
    message_list_clear (&t->list);
    message_list_clear (&t->seed);
    free (t->task_message_id);
    cancel_unref (t->cancel);
    free (t->held.continuation_id);
    free (t->harness.session);
    free (t->onward.continuation_text);
    free (t->harness.status_note);
    free (t->onward.standing_answer);
    free (t->onward.declined);
    free (t->onward.original_text);
    for (int i = 0; i < RESTART_SECTIONS; i++)
        buf_free (&t->onward.sections[i]);
    attempt_end_clear (&t->end);
}

/* The record of a task whose context nobody named and whose like begins anew each time: none goes
 * on with it. A capsule that declares context.retain says itself how long its records stay. */
static void
note_passing (struct session *s, const struct running_task *t)
{
    const struct context *context = s->manifest->context;
    if (t->task->has_made_context && s->asked->resume.mode == RESUME_NONE &&
        s->policy->lifecycle.conversation.value != CONVERSATION_THREADED &&
        ! (context && context->retain))
        passing_note (&s->passing, t->record);
}

/* The task the termination may spare or cancel. */
static void
publish (struct session *s, struct running_task *t)
{
    pthread_mutex_lock (&s->now.lock);
    s->now.task = t;
    s->now.has_standing_answer = false;
    pthread_mutex_unlock (&s->now.lock);
}

void
task_run (struct session *s, const struct task *task, struct task_outcome *out)
{
    struct running_task t = { .task = task,
                              .cancel = cancel_new (),
                              .is_fenced = ! task->is_trusted,
                              .started_ms = clock_monotonic_ms () };
    const struct context *context = s->manifest->context;
    t.record =
        conversation_new (s->rooms.harness || s->asked->player ? NULL : s->policy->record_store,
                          task->context_id, context && context->retain ? s->manifest->name : NULL);
    selection_peek (s, &t.choice);
    uint64_t listener = cancel_add (task->cancel, raise_work, t.cancel);
    publish (s, &t);
    _cleanup_error_ struct mur_error *err = NULL;
    if (task->text)
        task_text_write (s, task->text, strlen (task->text), &err);
    start_lines (s, task);
    hooks_task_begin (s, task);
    seed_ask (s, &t, str_eq (task->source, "a2a") ? task->parts_bytes : file_bytes (s));
    if (err) {
        attempt_error (s, &t, steal_ptr (&err));
        attempt_take_refusals (s, &t);
        record_error (s, &t);
    } else {
        run_attempts (s, &t);
    }
    end_task (s, &t);
    publish (s, NULL);
    note_passing (s, &t);
    cancel_remove (task->cancel, listener);
    out->ending = t.end.ending;
    out->reason = steal_ptr (&t.end.reason);
    out->error = steal_ptr (&t.end.error);
    running_task_clear (&t);
}
