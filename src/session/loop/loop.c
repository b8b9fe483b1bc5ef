/* SPDX-License-Identifier: Apache-2.0 */
#include "session/loop/loop.h"

#include "base/clock.h"
#include "base/diag.h"
#include "base/memory.h"
#include "door/tasks/intake.h"
#include "net/http_client.h"
#include "session/commands/background.h"
#include "session/loop/played_task.h"
#include "session/loop/task_run.h"
#include "session/state/deadline.h"
#include "session/state/session.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_TASK_WAIT_SECS 30
#define IDLE_AFTER_MS        1000 /* a capsule that waits this long gives memory back */

/* Seconds a session without a task waits for its first message. */
static uint64_t
first_wait_ms (void)
{
    const char *text = getenv ("MURMUR_A2A_TIMEOUT_SECS");
    char *end;
    unsigned long long secs = text ? strtoull (text, &end, 10) : 0;
    if (! text || ! text[0] || *end || text[0] == '-')
        secs = FIRST_TASK_WAIT_SECS;
    return secs * 1000;
}

/* --- folding --- */

static enum session_ending
ending_of (enum attempt_ending ending)
{
    static const enum session_ending map[] = { [ATTEMPT_OK] = ENDING_OK,
                                               [ATTEMPT_FAILED] = ENDING_FAILED,
                                               [ATTEMPT_MAX_TURNS] = ENDING_MAX_TURNS,
                                               [ATTEMPT_SPEND_CEILING] = ENDING_SPEND_CEILING,
                                               [ATTEMPT_CANCELED] = ENDING_CANCELED,
                                               [ATTEMPT_NO_ANSWER] = ENDING_OK,
                                               [ATTEMPT_REOPEN_BUDGET] = ENDING_FAILED };
    return map[ending];
}

/* The first run that did not complete stands. */
static void
fold (struct session *s, struct launch_outcome *out, struct task_outcome *run)
{
    enum session_ending ending = ending_of (run->ending);
    if (out->is_decided || ending == ENDING_OK)
        return;
    enum termination_cause cause = termination_cause (s);
    if (ending == ENDING_CANCELED &&
        (cause == TERMINATED_BY_DEADLINE || cause == TERMINATED_BY_FORMATION))
        return; /* that ending is the session's */
    out->is_decided = true;
    out->ending = ending;
    if (run->error) {
        out->error = run->error;
        run->error = NULL;
        return;
    }
    mur_fail (&out->error, E_RUN_040, "the task did not complete: %s%s%s",
              session_ending_name (ending), run->reason ? ": " : "",
              run->reason ? run->reason : "");
}

/* --- the loop --- */

static bool
is_queue (const struct session *s)
{
    return s->policy->lifecycle.task_acceptance.value == ACCEPT_QUEUE;
}

bool
loop_sleeps (const struct session *s)
{
    return is_queue (s) && s->policy->lifecycle.after_task.value == AFTER_SLEEP;
}

/* How long to wait for the next task. */
static uint64_t
wait_for_next (const struct session *s, bool has_own, unsigned runs)
{
    if (loop_sleeps (s))
        return UINT64_MAX;
    if (s->policy->lifecycle.task_acceptance.value == ACCEPT_NONE || has_own || runs)
        return 0;
    return first_wait_ms ();
}

/* The next task. A wait without bound first gives back what only work needs. */
static enum registry_next
next_task (struct session *s, uint64_t wait_ms, const struct task **task)
{
    if (s->asked->player)
        return played_next_task (s, task);
    if (wait_ms == UINT64_MAX) {
        enum registry_next next = registry_next (s->registry, IDLE_AFTER_MS, task);
        if (next != REGISTRY_NOTHING || registry_is_closed (s->registry))
            return next;
        memory_release_idle ();
    }
    return registry_next (s->registry, wait_ms, task);
}

/* True when nothing more may start although something may be queued. */
static bool
is_over (const struct session *s, bool has_own, unsigned runs)
{
    if (! runs || s->asked->player || loop_sleeps (s) ||
        s->policy->lifecycle.task_acceptance.value == ACCEPT_NONE)
        return false;
    return ! (is_queue (s) && has_own);
}

/* Of a sleeping queue's tasks only one the termination interrupted says how the launch went; one
 * that had ended before is over, whenever the signal comes. */
static bool
counts (const struct session *s, const struct task *task, const struct task_outcome *run)
{
    return task->origin == ORIGIN_USER || ! loop_sleeps (s) ||
           (termination_cause (s) != NOT_TERMINATED && run->ending == ATTEMPT_CANCELED);
}

void
loop_record_canceled (struct session *s, const struct task *task)
{
    static char *const none[] = { NULL };
    struct trace_task_canceled line = {
        .task_id = task->id, .phase = "queued", .detached_work_ids = none, .delegation_ids = none
    };
    trace_write_under (s->trace, TRACE_PARENT_SESSION, NULL, TRACE_EVENT_task_canceled, &line, NULL,
                       NULL);
}

/* A gateway will be asked: the client is loaded beside the task's first steps. A capsule that only
 * waits never loads it. */
static void
warm_client (struct session *s)
{
    for (size_t i = 0; i < s->kit.artifact_count; i++)
        if (s->kit.artifacts[i].guest.gateway) {
            http_client_warm (s->http);
            return;
        }
}

/* Nothing more may run after these: the work folder is over its bound, no root could be composed,
 * or a replay is over. */
static bool
ends_session (const struct mur_error *e)
{
    return e && (e->code == E_RUN_013 || e->code == E_RUN_014 || e->code == E_RPL_002 ||
                 e->code == E_RPL_003 || e->code == E_RPL_004);
}

/* A harness's run takes the lock itself, for as long as its bridge is open. */
static void
run_task (struct session *s, const struct task *task, struct task_outcome *run)
{
    if (s->rooms.harness) {
        task_run (s, task, run);
        return;
    }
    loop_lock_take (&s->loop_lock);
    task_run (s, task, run);
    loop_lock_release (&s->loop_lock);
}

/* Whoever started a capsule without a task sees nothing else until one comes, or none does. */
static void
tell_waiting (const struct session *s, uint64_t wait_ms)
{
    if (wait_ms == UINT64_MAX)
        diag_progress ("waiting for tasks; send one with: mur send %s \"...\"", s->id.text);
    else if (wait_ms)
        diag_note ("waiting %llu %s for a task; send one with: mur send %s \"...\"",
                   (unsigned long long)(wait_ms < 1000 ? wait_ms : wait_ms / 1000),
                   wait_ms < 1000 ? "ms" : "s", s->id.text);
}

void
loop_run (struct session *s, bool has_own, struct launch_outcome *out)
{
    unsigned runs = 0;
    uint64_t first_wait = has_own || s->asked->player ? 0 : wait_for_next (s, false, 0);
    tell_waiting (s, first_wait);
    while (termination_cause (s) == NOT_TERMINATED && ! is_over (s, has_own, runs)) {
        const struct task *task;
        background_report (s);
        enum registry_next next = next_task (s, wait_for_next (s, has_own, runs), &task);
        if (next == REGISTRY_CANCELED_QUEUED) {
            loop_record_canceled (s, task);
            continue;
        }
        if (next == REGISTRY_POKED)
            continue;
        if (next == REGISTRY_NOTHING && ! runs && first_wait && ! registry_is_closed (s->registry))
            diag_note ("no task came, so nothing was done; give one with --task");
        if (next != REGISTRY_TASK)
            break;
        struct task_outcome run = { 0 };
        if (! s->asked->player)
            warm_client (s);
        run_task (s, task, &run);
        if (! runs++ && has_own && ! s->asked->player &&
            wait_for_next (s, has_own, 1) == UINT64_MAX)
            tell_waiting (s, UINT64_MAX);
        bool is_own_failure = ! s->asked->player && task->origin == ORIGIN_USER &&
                              ending_of (run.ending) != ENDING_OK;
        bool is_fatal = ends_session (run.error);
        if (is_fatal || counts (s, task, &run))
            fold (s, out, &run);
        task_outcome_clear (&run);
        if (is_own_failure || is_fatal)
            break;
    }
    if (! out->is_decided && termination_cause (s) == TERMINATED_BY_FORMATION) {
        out->is_decided = true;
        out->ending = ENDING_FORMATION;
    }
    if (! out->is_decided && termination_cause (s) == TERMINATED_BY_DEADLINE) {
        const struct deadline *d = s->deadline;
        out->is_decided = true;
        out->ending = ENDING_DEADLINE;
        if (d->is_inherited)
            mur_fail (&out->error, E_RUN_053,
                      "the deadline %s, inherited from the session that started this one, was "
                      "reached",
                      d->at_text);
        else
            mur_fail (&out->error, E_RUN_053,
                      "the session's own deadline of %llu second%s was reached",
                      (unsigned long long)d->secs, d->secs == 1 ? "" : "s");
    }
}
