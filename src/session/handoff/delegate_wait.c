/* SPDX-License-Identifier: Apache-2.0 */
#include "session/handoff/delegate_wait.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "session/handoff/child_question.h"
#include "session/handoff/delegate_internal.h"
#include "session/handoff/delegation_outcome.h"
#include "session/handoff/handoff.h"
#include "session/state/session.h"
#include "spawn/child/child_door.h"
#include "spawn/child/door_ask.h"

#include <string.h>
#include <sys/wait.h>

#define POLL_MS      500
#define EXIT_WAIT_MS 5000
#define EXIT_POLL_MS 50

#define ENDED_BY_PARENT "ended by the session that delegated to it"

static char *
answer_of (const struct delegation *d, const json_t *task)
{
    size_t len;
    _cleanup_free_ char *reason = NULL;
    char *answer = door_response_text (task);
    if (! answer)
        answer = delegation_answer (d, &len, &reason);
    return answer ? answer : x_strdup ("");
}

/* What the task's state makes of the call. False: it has not ended. */
static bool
judge_state (const struct delegation *d, const json_t *task, struct delegate_result *out)
{
    const json_t *status = json_object_get (task, "status");
    const char *state = json_get_string (status, "state");
    if (str_eq (state, "TASK_STATE_COMPLETED")) {
        out->status = DELEGATE_COMPLETED;
        out->output = answer_of (d, task);
        return true;
    }
    if (! str_eq (state, "TASK_STATE_FAILED") && ! str_eq (state, "TASK_STATE_REJECTED") &&
        ! str_eq (state, "TASK_STATE_CANCELED"))
        return false;
    out->status = DELEGATE_FAILED;
    out->output = door_parts_text (json_object_get (status, "message"));
    return true;
}

/* A child may have done its task and left between two looks: then its files hold the answer. */
static void
end_gone (const struct delegation *d, int exit_status, struct delegate_result *out)
{
    if (WIFEXITED (exit_status) && WEXITSTATUS (exit_status) == 0) {
        out->status = DELEGATE_COMPLETED;
        out->output = answer_of (d, NULL);
        return;
    }
    _cleanup_free_ char *how = child_status_text (exit_status);
    _cleanup_free_ char *tail = mur_child_stderr_tail (d->child);
    out->status = DELEGATE_FAILED;
    out->output =
        x_asprintf ("the child ended before its task had: %s%s%s", how, *tail ? "\n" : "", tail);
}

/* Until it is decided. */
static void
poll_task (struct session *s, const struct task *running, struct delegation *d,
           struct cancel *cancel, struct delegate_result *out)
{
    uint64_t bound_secs = delegations_bound_secs (handoff_delegations (s));
    uint64_t end_ms = d->ready_ms + bound_secs * 1000;
    for (;;) {
        int exit_status;
        bool has_exited = mur_child_has_exited (d->child, &exit_status);
        _cleanup_json_ json_t *task = child_door_task (s->http, d->child, d->child_task_id, cancel);
        if (task && judge_state (d, task, out))
            return;
        if (task)
            child_question_pass (s, running, d, task, cancel);
        if (cancel_is_raised (cancel)) {
            out->status = DELEGATE_CANCELED;
            out->output = x_strdup ("the call was cancelled while the child worked");
            return;
        }
        if (has_exited) {
            end_gone (d, exit_status, out);
            return;
        }
        uint64_t now_ms = clock_monotonic_ms ();
        if (now_ms >= end_ms) {
            out->status = DELEGATE_TIMED_OUT;
            out->output = x_asprintf ("it was not done within %llus, the delegation deadline",
                                      (unsigned long long)bound_secs);
            return;
        }
        cancel_sleep (cancel, end_ms - now_ms < POLL_MS ? end_ms - now_ms : POLL_MS);
    }
}

/* One whose task has ended may finish exiting; any other is ended. */
static void
let_go (struct session *s, struct delegation *d, const struct delegate_result *out)
{
    bool is_over = out->status == DELEGATE_COMPLETED || out->status == DELEGATE_FAILED;
    uint64_t end_ms = clock_monotonic_ms () + EXIT_WAIT_MS;
    while (is_over && ! mur_child_has_exited (d->child, NULL) && clock_monotonic_ms () < end_ms)
        usleep (EXIT_POLL_MS * 1000);
    mur_child_end (d->child);
    if (out->status == DELEGATE_CANCELED)
        watch_record_end (&d->watched, ENDED_BY_PARENT);
    const char *outcome =
        out->status == DELEGATE_CANCELED ? "terminated" : delegate_status_name (out->status);
    delegation_trace (s, d, true, outcome, out->status == DELEGATE_COMPLETED ? NULL : out->output);
    delegations_remove (handoff_delegations (s), d);
    delegation_free (d);
}

void
delegate_wait (struct session *s, const struct delegate_ask *ask, struct delegate_result *out)
{
    *out = (struct delegate_result){ 0 };
    struct delegation *d = delegate_hand_over (s, ask, true, out);
    if (! d)
        return;
    delegate_describe (d, out);
    poll_task (s, ask->running, d, ask->cancel, out);
    let_go (s, d, out);
}
