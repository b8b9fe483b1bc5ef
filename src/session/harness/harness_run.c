/* SPDX-License-Identifier: Apache-2.0 */
#include "session/harness/harness_run.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "door/tasks/tasks.h"
#include "session/harness/harness_changes.h"
#include "session/harness/harness_events.h"
#include "session/harness/harness_gateway.h"
#include "session/harness/harness_launch.h"
#include "session/harness/harness_lines.h"
#include "session/harness/harness_memory.h"
#include "session/harness/harness_play.h"
#include "session/harness/stage_harness.h"
#include "session/state/loop_lock.h"
#include "session/state/session.h"
#include "session/task/attempt_end.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_GRACE_MS   3000
#define CANCEL_GRACE_MS 10000

static const char *const cause_names[] = {
    [HARNESS_RUNS] = "eof",
    [HARNESS_TERMINAL] = "terminal",
    [HARNESS_EOF] = "eof",
    [HARNESS_MAX_TURNS] = "max_turns",
    [HARNESS_SPEND_CEILING] = "spend_ceiling",
    [HARNESS_INACTIVITY] = "inactivity",
    [HARNESS_CANCELED] = "canceled",
    [HARNESS_DRIVER_ERROR] = "driver_error",
    [HARNESS_KEY_REFUSED] = "key_refused",
};

/* --- the event loop --- */

/* Takes complete lines. */
static void
take_lines (struct harness_run *run)
{
    const char *lines[HARNESS_LINES_A_PARSE];
    size_t lens[HARNESS_LINES_A_PARSE], count = 0, most = harness_lines_most (run);
    while (count < most && harness_child_line (&run->child, &lines[count], &lens[count]))
        count++;
    if (count)
        harness_lines_take (run, lines, lens, count);
}

/* What the harness still says once its end is known is read, so that it can go, and dropped; but a
 * turn's text that comes after a cancel is kept. */
static void
drop_lines (struct harness_run *run)
{
    if (run->end.was_interrupted && run->end.cause == HARNESS_RUNS) {
        take_lines (run);
        return;
    }
    const char *line;
    size_t len;
    while (harness_child_line (&run->child, &line, &len))
        ;
}

static void
pump (struct harness_run *run, int wake_fd, uint64_t until_ms)
{
    uint64_t now = clock_monotonic_ms ();
    loop_lock_release (&run->session->loop_lock);
    harness_child_pump (&run->child, wake_fd, until_ms > now ? until_ms - now : 0);
    loop_lock_take (&run->session->loop_lock);
}

/* Tells the harness to stop. True when it was told and has its grace. */
static bool
interrupt (struct harness_run *run)
{
    const enum interrupt_method method = run->session->rooms.harness->is.interrupt;
    bool is_told = false;
    if (method == INTERRUPT_SIGNAL_INT) {
        harness_child_signal (&run->child, SIGINT);
        is_told = true;
    } else if (method == INTERRUPT_STDIN_MESSAGE && run->plan.keeps_stdin_open &&
               run->plan.interrupt_bytes.is_some && run->plan.interrupt_bytes.len &&
               run->child.in_fd >= 0) {
        harness_child_write (&run->child, run->plan.interrupt_bytes.data,
                             run->plan.interrupt_bytes.len);
        is_told = run->child.in_fd >= 0;
    }
    run->end.was_interrupted = true;
    TRACE (run->session->trace, NULL, harness_interrupt, .task_id = run->task->task->id,
           .method = interrupt_method_name (method), .delivered = is_told,
           .grace_ms = is_told ? CANCEL_GRACE_MS : 0);
    return is_told;
}

/* After a cancel: the grace is not stretched by what the harness says. */
static void
wind_down (struct harness_run *run)
{
    uint64_t until_ms = clock_monotonic_ms () + (interrupt (run) ? CANCEL_GRACE_MS : 0);
    bool has_ended = false;
    while (clock_monotonic_ms () < until_ms && ! harness_child_has_exited (&run->child)) {
        drop_lines (run);
        if (! has_ended &&
            (run->end.cause != HARNESS_RUNS || harness_child_is_at_end (&run->child))) {
            uint64_t soon_ms = clock_monotonic_ms () + EXIT_GRACE_MS;
            until_ms = soon_ms < until_ms ? soon_ms : until_ms;
            has_ended = true;
            harness_child_end_input (&run->child);
        }
        pump (run, -1, until_ms);
    }
    while (run->end.cause == HARNESS_RUNS && harness_child_has_line (&run->child))
        drop_lines (run);
    run->end.cause = HARNESS_CANCELED;
}

/* Makes <wake_fd> (-1: none) what a refused key wakes. */
static void
set_wake (struct harness *h, int wake_fd)
{
    pthread_mutex_lock (&h->lock);
    h->wake_fd = wake_fd;
    h->is_key_refused = false;
    pthread_mutex_unlock (&h->lock);
}

static bool
is_key_refused (struct harness *h)
{
    pthread_mutex_lock (&h->lock);
    bool is_refused = h->is_key_refused;
    pthread_mutex_unlock (&h->lock);
    return is_refused;
}

/* In the order of the spec: cancel, then what the harness said, then the time. */
static void
run_until_over (struct harness_run *run, int wake_fd)
{
    const uint64_t window_ms = harness_inactivity_ms ();
    uint64_t heard_ms = clock_monotonic_ms ();
    while (run->end.cause == HARNESS_RUNS) {
        if (cancel_is_raised (run->task->cancel)) {
            wind_down (run);
            return;
        }
        if (harness_child_has_line (&run->child)) {
            take_lines (run); /* which may have waited for a person */
            heard_ms = clock_monotonic_ms ();
            continue;
        }
        if (run->child.is_too_long) {
            harness_fail_line (run);
            return;
        }
        if (is_key_refused (run->session->rooms.harness)) {
            harness_fail_key (run);
            return;
        }
        if (harness_child_has_said_all (&run->child)) {
            run->end.cause = HARNESS_EOF;
            return;
        }
        uint64_t asked_ms = run->bridge ? bridge_active_ms (run->bridge) : 0;
        if (asked_ms > heard_ms)
            heard_ms = asked_ms;
        if (clock_monotonic_ms () - heard_ms >= window_ms)
            harness_fail_inactive (run, window_ms);
        else
            pump (run, wake_fd, heard_ms + window_ms);
    }
}

/* A harness that has said its last gets a little time to go; any other is killed. */
static void
end_child (struct harness_run *run)
{
    struct harness_child *c = &run->child;
    bool may_go = run->end.cause == HARNESS_TERMINAL || run->end.cause == HARNESS_EOF;
    uint64_t until_ms = clock_monotonic_ms () + EXIT_GRACE_MS;
    harness_child_end_input (c);
    while (may_go && ! harness_child_has_exited (c) && clock_monotonic_ms () < until_ms) {
        pump (run, -1, until_ms);
        drop_lines (run);
    }
    if (! harness_child_has_exited (c))
        harness_child_kill (run->session, c);
    loop_lock_release (&run->session->loop_lock);
    harness_child_reap (run->session, c);
    loop_lock_take (&run->session->loop_lock);
    /* The rest of stderr, which may say why. */
    while (c->err_fd >= 0 && clock_monotonic_ms () < until_ms)
        pump (run, -1, until_ms);
}

static void
exit_line (struct harness_run *run)
{
    const struct harness_child *c = &run->child;
    bool was_signalled = WIFSIGNALED (c->status);
    TRACE (run->session->trace, NULL, harness_exit, .task_id = run->task->task->id,
           .code = { ! was_signalled, WEXITSTATUS (c->status) },
           .signal = { was_signalled, was_signalled ? WTERMSIG (c->status) : 0 },
           .cause = cause_names[run->end.cause],
           .killed = c->was_killed || run->end.cause == HARNESS_CANCELED,
           .duration_ms = c->ended_ms - c->started_ms);
}

/* --- how the attempt ends --- */

static void
end_canceled (struct harness_run *run)
{
    struct running_task *t = run->task;
    if (run->end.answer)
        result_write (run->session, t, run->end.answer);
    if (run->child.was_killed) {
        free (t->harness.status_note);
        t->harness.status_note = x_strdup ("the harness was killed");
    }
    attempt_cancel (run->session, t, t->end.wait_phase ? t->end.wait_phase : "harness",
                    TRACE_NUM (t->counts.turns));
}

/* A resumed harness that never came to a session has lost it. */
static bool
has_lost_session (const struct harness_run *run)
{
    return run->is_resume && ! run->reported_id && run->end.has_failed &&
           ! run->end.failed_in_runtime &&
           (run->end.failure == FAILURE_HARNESS_ERROR || run->end.failure == FAILURE_OTHER);
}

static void
end_failed (struct harness_run *run)
{
    struct session *s = run->session;
    struct mur_error *err = steal_ptr (&run->end.error);
    if (! err && has_lost_session (run)) {
        _cleanup_free_ char *path =
            harness_memory_path (s->rooms.harness->memory, run->task->task->context_id);
        mur_fail (&err, E_RUN_036,
                  "the harness %s lost the conversation of context %s: its session %s (%s) cannot "
                  "be resumed: %s",
                  s->rooms.harness->is.harness, run->task->task->context_id, run->session_id, path,
                  run->end.failure_text);
        mur_hint (&err, "begin it anew with --forget-session --context %s",
                  run->task->task->context_id);
    } else if (! err) {
        mur_fail (&err, E_RUN_033, "the harness turn failed (%s): %s",
                  failure_kind_name (run->end.failure), run->end.failure_text);
        mur_hint (&err, "auth: sign the harness in on this host; quota: wait, or raise the plan's "
                        "limit; max-turns: raise inference.max_turns");
    }
    attempt_error (s, run->task, err);
}

static void
end_attempt (struct harness_run *run)
{
    struct running_task *t = run->task;
    if (run->end.cause == HARNESS_CANCELED) {
        end_canceled (run);
    } else if (run->end.cause == HARNESS_SPEND_CEILING) {
        attempt_end_spend (run->session, run->task, &run->end.refusal);
    } else if (run->end.error || run->end.has_failed) {
        end_failed (run);
    } else {
        bool has_shown = run->turn.has_shown_text;
        attempt_complete (run->session, t, run->end.answer ? run->end.answer : "");
        if (! has_shown && run->end.answer)
            streams_text (registry_streams (run->session->registry), t->task, run->end.answer,
                          strlen (run->end.answer), true);
    }
}

/* Only a run that did something is worth going on with. */
static void
keep_session (struct harness_run *run)
{
    struct session *s = run->session;
    struct running_task *t = run->task;
    const char *id = run->reported_id ? run->reported_id : run->session_id;
    if (! run->did_work)
        return;
    free (t->harness.session);
    t->harness.session = x_strdup (id);
    for (int m = 0; m < USAGE_MEMBERS; m++)
        t->harness.used[m] = run->seen.is_set[m] ? run->seen.value[m] : run->attributed.value[m];
    if (! harness_is_threaded (s))
        return;
    if (! harness_memory_keep (s->rooms.harness->memory, t->task->context_id, id,
                               s->rooms.harness->is.harness, s->rooms.harness->driver->full_name,
                               s->rooms.harness->counts_thread ? t->harness.used : NULL))
        diag_lost ("the harness session of context %s was not written down", t->task->context_id);
}

/* --- the attempt --- */

static void
wake (void *ctx)
{
    eventfd_write (*(int *)ctx, 1);
}

/* For real. */
static void
run_program (struct harness_run *run)
{
    int wake_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
    uint64_t listener = cancel_add (run->task->cancel, wake, &wake_fd);
    set_wake (run->session->rooms.harness, wake_fd);
    run_until_over (run, wake_fd);
    set_wake (run->session->rooms.harness, -1);
    end_child (run);
    harness_changes_end (run);
    if (run->end.cause == HARNESS_TERMINAL && ! run->end.has_failed)
        harness_gateway_compare (run->session, run->task->task->id, &run->provider_began,
                                 &run->seen);
    cancel_remove (run->task->cancel, listener);
    close (wake_fd);
}

static void
run_child (struct harness_run *run)
{
    if (run->log.then)
        harness_play (run);
    else
        run_program (run);
    const char *cause = cause_names[run->end.cause];
    exit_line (run);
    harness_lines_end (run, cause);
}

static void
run_clear (struct harness_run *run)
{
    bridge_close (run->bridge);
    harness_child_clear (run->session, &run->child);
    harness_launch_clear (run);
    frames_clear (&run->frames);
    guest_freep (&run->driver);
    harness_events_clear (run);
    tree_look_free (run->before);
    arena_free (run->arena);
}

static bool
is_spent (struct harness_run *run)
{
    return ! spend_charge (run->session->spend, 0, 0, &run->end.refusal);
}

static void
attempt (struct session *s, struct running_task *t)
{
    struct harness_run run = { .session = s, .task = t, .arena = arena_new () };
    struct mur_error *err = NULL;
    if (s->rooms.harness->door)
        run.provider_began = gateway_door_usage (s->rooms.harness->door);
    run.child = (struct harness_child){ .in_fd = -1, .out_fd = -1, .err_fd = -1 };
    frames_begin (&run.frames, s, t->task, true);
    if (is_spent (&run)) {
        harness_spend_line (&run);
        attempt_end_spend (s, t, &run.end.refusal);
    } else if (run.before = tree_look_new (s->places.work), harness_launch (&run, &err)) {
        run_child (&run);
        end_attempt (&run);
        keep_session (&run);
    } else if (err) {
        attempt_error (s, t, err);
    } else { /* cancelled before anything ran */
        attempt_cancel (s, t, "harness", TRACE_NUM (t->counts.turns));
    }
    run_clear (&run);
}

void
harness_attempt_run (struct session *s, struct running_task *t)
{
    if (cancel_is_raised (t->cancel)) {
        attempt_cancel (s, t, "turn", TRACE_NUM (t->counts.turns));
        return;
    }
    if (! attempt_turns_left (s, t)) {
        attempt_end_max_turns (s, t);
        return;
    }
    loop_lock_take (&s->loop_lock);
    attempt (s, t);
    loop_lock_release (&s->loop_lock);
}
