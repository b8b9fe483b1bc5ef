/* SPDX-License-Identifier: Apache-2.0 */
#include "session/task/attempt_end.h"
#include "fs/latch.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "door/tasks/tasks.h"
#include "session/commands/background.h"
#include "session/handoff/delegations.h"
#include "session/handoff/handoff.h"
#include "session/hooks/hook_task.h"
#include "session/state/session.h"

#include <string.h>

const char *
attempt_ending_name (enum attempt_ending ending)
{
    static const char *const names[] = {
        "ok",       "failed",    "max_turns_reached",      "spend_ceiling_reached",
        "canceled", "no_answer", "reopen_budget_exhausted"
    };
    return names[ending];
}

void
attempt_end_clear (struct attempt_end *e)
{
    free (e->result);
    free (e->response);
    free (e->reason);
    mur_error_freep (&e->error);
    *e = (struct attempt_end){ .ending = ATTEMPT_FAILED };
}

static bool
write_out (struct session *s, const char *path, const char *text, struct mur_error **err)
{
    struct mur_error *why = NULL;
    if (fs_make_dirs (s->places.records, "out", 0777, false, &why) &&
        fs_write (s->places.records, path, text, strlen (text), 0666, false, &why))
        return true;
    bool is_latched = why->code == E_RUN_050; /* the latch reports that one */
    if (! is_latched)
        mur_fail (err, why->code, "%s was not written: %s", path, why->message);
    mur_error_free (why);
    return is_latched;
}

static bool
write_result (struct session *s, const struct running_task *t, const char *text,
              struct mur_error **err)
{
    hooks_output (s, text);
    if (! write_out (s, "out/result.txt", text, err))
        return false;
    if (s->policy->lifecycle.conversation.value != CONVERSATION_THREADED)
        return true;
    _cleanup_free_ char *path = x_asprintf ("out/result_%s.txt", t->task->id);
    return write_out (s, path, text, err);
}

void
result_write (struct session *s, const struct running_task *t, const char *text)
{
    _cleanup_error_ struct mur_error *err = NULL;
    if (! write_result (s, t, text, &err))
        diag_lost ("%s", err->message);
}

static void
set_text (char **to, const char *text)
{
    free (*to);
    *to = text ? x_strdup (text) : NULL;
}

void
attempt_complete (struct session *s, struct running_task *t, const char *answer)
{
    t->end.ending = ATTEMPT_OK;
    set_text (&t->end.result, answer);
    set_text (&t->end.response, answer);
    struct mur_error *err = NULL;
    if (! write_result (s, t, answer, &err))
        attempt_error (s, t, err); /* an answer that is lost is no success */
}

bool
attempt_decline (struct session *s, struct running_task *t)
{
    bool may_end = t->end.ending != ATTEMPT_CANCELED && ! t->end.has_failed_line && ! t->end.error;
    if (! t->onward.declined || ! may_end || t->end.ending == ATTEMPT_NO_ANSWER)
        return t->onward.declined && t->end.ending == ATTEMPT_NO_ANSWER;
    t->end.ending = ATTEMPT_NO_ANSWER;
    set_text (&t->end.reason, t->onward.declined);
    set_text (&t->end.response, NULL);
    _cleanup_free_ char *text = x_asprintf ("no answer: %s", t->onward.declined);
    set_text (&t->end.result, text);
    result_write (s, t, text);
    return true;
}

static void
failed_line (struct session *s, struct running_task *t, const char *cause, const char *reason,
             struct trace_num turn)
{
    t->end.has_failed_line = true;
    t->end.cause = cause;
    TRACE (s->trace, NULL, task_failed, .task_id = t->task->id, .turn = turn, .cause = cause,
           .reason = reason);
}

void
attempt_fail (struct session *s, struct running_task *t, const char *cause, const char *reason,
              const char *retry_note, struct trace_num turn)
{
    t->end.ending = ATTEMPT_FAILED;
    /* The reason is cut, the note about retries is kept. */
    _cleanup_free_ char *cut = trace_free_text (s->trace, reason);
    free (t->end.reason);
    t->end.reason = x_asprintf ("%s%s", cut, retry_note ? retry_note : "");
    failed_line (s, t, cause, t->end.reason, turn);
    _cleanup_free_ char *whole = redactor_apply (s->redactor, reason);
    _cleanup_free_ char *text = x_asprintf ("error: %s%s", whole, retry_note ? retry_note : "");
    set_text (&t->end.result, text);
    result_write (s, t, text);
}

void
attempt_refuse_reopen (struct session *s, struct running_task *t, const char *reason)
{
    mur_error_freep (&t->end.error);
    t->end.error = NULL;
    mur_fail (&t->end.error, E_RUN_007, "%s", reason);
    t->end.ending = ATTEMPT_REOPEN_BUDGET;
    set_text (&t->end.reason, reason);
    failed_line (s, t, "reopen_budget_exhausted", reason, TRACE_NUM (t->counts.turns));
}

void
attempt_cancel (struct session *s, struct running_task *t, const char *phase, struct trace_num turn)
{
    if (t->onward.standing_answer && termination_cause (s) == TERMINATED_BY_DEADLINE) {
        t->end.ending = ATTEMPT_CANCELED;
        t->end.is_spared = true;
        return;
    }
    attempt_cancel_unspared (s, t, phase, turn);
}

void
attempt_cancel_unspared (struct session *s, struct running_task *t, const char *phase,
                         struct trace_num turn)
{
    static char *const none[] = { NULL };
    _cleanup_strv_ struct strv detached = { 0 }, delegated = { 0 };
    t->end.ending = ATTEMPT_CANCELED;
    t->end.cancel_phase = phase;
    background_list (s, t->task->id, &detached);
    delegations_list (handoff_delegations (s), t->task->id, &delegated);
    TRACE (s->trace, NULL, task_canceled, .task_id = t->task->id, .turn = turn, .phase = phase,
           .detached_work_ids = detached.len ? detached.items : none,
           .delegation_ids = delegated.len ? delegated.items : none);
    if (t->record) {
        _cleanup_json_ json_t *content =
            json_pack ("[{s:s,s:s}]", "type", "text", "text",
                       "The task was stopped before there was a reply.");
        _cleanup_message_ struct message *m = message_new_assistant (content);
        m->is_canceled = true;
        conversation_append_one (t->record, m);
    }
}

void
attempt_error (struct session *s, struct running_task *t, struct mur_error *error)
{
    t->end.ending = ATTEMPT_FAILED;
    _cleanup_free_ char *reason = trace_free_text (s->trace, error->message);
    set_text (&t->end.reason, reason);
    mur_error_freep (&t->end.error);
    t->end.error = error;
}

bool
attempt_take_refusals (struct session *s, struct running_task *t)
{
    struct fs_refusal *refusals;
    size_t count = fs_latch_drain (s->places.latch, &refusals);
    for (size_t i = 0; i < count; i++)
        TRACE (s->trace, NULL, workdir_path_refused, .task_id = t->task->id,
               .path = refusals[i].path, .operation = fs_operation_name (refusals[i].operation),
               .refused_at = refusals[i].refused_at, .reason = fs_reason_name (refusals[i].reason));
    if (count) {
        struct mur_error *error = NULL;
        mur_fail (&error, E_RUN_050, "%s: %s is refused (%s); the runtime does not %s it",
                  refusals[0].path, refusals[0].refused_at, fs_reason_name (refusals[0].reason),
                  fs_operation_name (refusals[0].operation));
        t->onward.was_path_refused = true;
        attempt_error (s, t, error);
        failed_line (s, t, "workdir_path_refused", error->message, TRACE_NO_NUM);
    }
    fs_refusals_free (refusals, count);
    return count > 0;
}

bool
attempt_let_answer_stand (struct session *s, struct running_task *t)
{
    pthread_mutex_lock (&s->now.lock);
    bool stands = ! cancel_is_raised (t->cancel) && termination_cause (s) == NOT_TERMINATED;
    if (stands) {
        free (t->onward.standing_answer);
        t->onward.standing_answer = x_strdup (t->end.result ? t->end.result : "");
        s->now.has_standing_answer = true;
    }
    pthread_mutex_unlock (&s->now.lock);
    return stands;
}

/* --- limits --- */

uint64_t
attempt_turns_left (const struct session *s, const struct running_task *t)
{
    const struct opt_u64 *cap = &s->manifest->inference->max_turns;
    if (! cap->is_set)
        return UINT64_MAX;
    uint64_t used = t->counts.turns + t->counts.hook_calls;
    return cap->value > used ? cap->value - used : 0;
}

void
attempt_end_max_turns (struct session *s, struct running_task *t)
{
    t->end.ending = ATTEMPT_MAX_TURNS;
    uint64_t cap = s->manifest->inference->max_turns.value;
    free (t->end.reason);
    t->end.reason = x_asprintf ("inference.max_turns (%llu) was reached: turns 0 to %llu were used",
                                (unsigned long long)cap, (unsigned long long)cap - 1);
    free (t->end.result);
    t->end.result = x_asprintf ("error: %s", t->end.reason);
    result_write (s, t, t->end.result);
}

void
attempt_end_spend (struct session *s, struct running_task *t, const struct spend_refusal *r)
{
    _cleanup_free_ char *asked =
        r->requested ? x_asprintf (", %llu more asked for", (unsigned long long)r->requested)
                     : NULL;
    t->end.ending = ATTEMPT_SPEND_CEILING;
    free (t->end.reason);
    t->end.reason = x_asprintf ("the %s spend ceiling of %llu tokens was reached: %llu used%s",
                                spend_limit_name (r->limit), (unsigned long long)r->ceiling,
                                (unsigned long long)r->used, asked ? asked : "");
    free (t->end.result);
    t->end.result = x_asprintf ("stopped: %s", t->end.reason);
    result_write (s, t, t->end.result);
}
