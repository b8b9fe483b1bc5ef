/* SPDX-License-Identifier: Apache-2.0 */
#include "session/launch/termination.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "door/tasks/intake.h"
#include "home/supervisor.h"
#include "session/launch/launched.h"
#include "session/state/deadline.h"
#include "session/state/running_task.h"
#include "session/state/session.h"
#include "session/state/signals.h"
#include "spawn/child/lifeline.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#define TEARDOWN_LIMIT_SECS 20
#define FORCED_EXIT_STATUS  143

struct termination {
    int signal_fd;
    int timer_fd; /* the deadline, then the teardown limit */
    int stop_fd;
    pthread_t thread;
    bool is_listening;
    unsigned signals; /* taken so far; the listening thread's */
    bool is_settled;  /* guarded by now.lock: the trace has its last line */
};

bool
termination_arm (struct session *s, struct mur_error **err)
{
    struct termination *x = x_new0 (struct termination);
    s->rooms.launched->termination = x;
    sigset_t signals = signals_of_ending ();
    signals_hold (NULL);
    x->signal_fd = signalfd (-1, &signals, SFD_CLOEXEC);
    x->timer_fd = timerfd_create (CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    x->stop_fd = eventfd (0, EFD_CLOEXEC);
    if (x->signal_fd < 0 || x->timer_fd < 0 || x->stop_fd < 0)
        return mur_fail_errno (err, E_IO_003, "cannot watch for signals");
    return true;
}

static void
set_timer (struct termination *x, uint64_t after_ms)
{
    struct itimerspec spec = { .it_value = { (time_t)(after_ms / 1000),
                                             (long)(after_ms % 1000) * 1000000 } };
    if (! after_ms)
        spec.it_value.tv_nsec = 1;
    timerfd_settime (x->timer_fd, 0, &spec, NULL);
}

/* Every live task is cancelled, but for one the deadline spares: there only the work is stopped. */
static void
cancel_tasks (struct session *s, enum termination_cause cause)
{
    pthread_mutex_lock (&s->now.lock);
    bool is_spared = cause == TERMINATED_BY_DEADLINE && s->now.task && s->now.has_standing_answer;
    struct cancel *work = is_spared ? cancel_ref (s->now.task->cancel) : NULL;
    pthread_mutex_unlock (&s->now.lock);
    if (work) {
        cancel_raise (work);
        cancel_unref (work);
        return;
    }
    _cleanup_strv_ struct strv ids = { 0 };
    registry_cancel_all (s->registry, &ids);
}

static void
write_cause (struct session *s, enum termination_cause cause)
{
    const struct spawner *by = s->asked->launcher.spawner;
    if (cause == TERMINATED_BY_DEADLINE)
        TRACE (s->trace, NULL, deadline_reached, .deadline_at = s->deadline->at_text,
               .deadline_secs = s->deadline->secs,
               .source = s->deadline->is_inherited ? "inherited" : "own");
    if (cause == TERMINATED_BY_FORMATION)
        TRACE (s->trace, NULL, formation_ended, .formation_id = s->asked->launcher.formation_id);
    if (cause == TERMINATED_BY_SPAWNER)
        TRACE (s->trace, NULL, spawner_ended, .spawned_by = by->session_id,
               .delegation_id = by->delegation_id);
}

/* The first one is recorded; true unless there is nothing left to wind down. */
static bool
take_cause (struct session *s, enum termination_cause cause)
{
    struct termination *x = s->rooms.launched->termination;
    pthread_mutex_lock (&s->now.lock);
    bool is_first = ! x->is_settled;
    if (is_first)
        write_cause (s, cause);
    s->cause = cause;
    pthread_mutex_unlock (&s->now.lock);
    return is_first;
}

void
termination_settle (struct session *s)
{
    if (! s->rooms.launched->termination)
        return;
    pthread_mutex_lock (&s->now.lock);
    s->rooms.launched->termination->is_settled = true;
    pthread_mutex_unlock (&s->now.lock);
}

static void
termination_begin (struct session *s, enum termination_cause cause)
{
    static const char *const lines[] = {
        [TERMINATED_BY_SIGNAL] = "[capsule-runtime] asked to stop: winding down",
        [TERMINATED_BY_TERMINAL] = "[capsule-runtime] asked to stop: winding down",
        [TERMINATED_BY_DEADLINE] =
            "[capsule-runtime] the session's deadline was reached: winding down",
        [TERMINATED_BY_SPAWNER] = LIFELINE_ENDED_LINE,
        [TERMINATED_BY_FORMATION] = FORMATION_ENDED_LINE,
    };
    /* A deadline that has passed by now came first. */
    if (! deadline_left_ms (s->deadline))
        cause = TERMINATED_BY_DEADLINE;
    if (take_cause (s, cause)) {
        cancel_tasks (s, cause);
        registry_interrupt (s->registry);
        diag_stderr_line ("%s", lines[cause]);
        supervisor_tell ("STOPPING=1", "winding down");
    }
    set_timer (s->rooms.launched->termination, TEARDOWN_LIMIT_SECS * 1000);
}

static _noreturn_ void
force_exit (struct session *s)
{
    last_acts_run (s);
    _exit (FORCED_EXIT_STATUS);
}

static void
on_signal (struct session *s)
{
    struct signalfd_siginfo info;
    if (read (s->rooms.launched->termination->signal_fd, &info, sizeof (info)) !=
        (ssize_t)sizeof (info))
        return;
    /* A closed terminal is told twice, by the shell and by the kernel. */
    if (info.ssi_signo == SIGHUP && s->rooms.launched->termination->signals)
        return;
    if (++s->rooms.launched->termination->signals > 1)
        force_exit (s);
    /* The kernel's own is a key that was pressed; a kill says who sent it. */
    bool is_key = info.ssi_signo == SIGINT && info.ssi_code == SI_KERNEL;
    if (s->cause == NOT_TERMINATED)
        termination_begin (s, is_key ? TERMINATED_BY_TERMINAL : TERMINATED_BY_SIGNAL);
}

static void
on_timer (struct session *s)
{
    uint64_t ticks;
    if (read (s->rooms.launched->termination->timer_fd, &ticks, sizeof (ticks)) !=
        (ssize_t)sizeof (ticks))
        return;
    if (s->cause != NOT_TERMINATED)
        force_exit (s);
    termination_begin (s, TERMINATED_BY_DEADLINE);
}

static void
on_lifeline (struct session *s, enum lifeline which, struct pollfd *fd,
             enum termination_cause cause)
{
    if (! fd->revents || ! lifeline_has_ended (which))
        return;
    fd->fd = -1;
    if (s->cause == NOT_TERMINATED)
        termination_begin (s, cause);
}

static void *
listen_thread (void *arg)
{
    struct session *s = arg;
    struct termination *x = s->rooms.launched->termination;
    struct pollfd fds[] = { { x->signal_fd, POLLIN, 0 },
                            { x->timer_fd, POLLIN, 0 },
                            { x->stop_fd, POLLIN, 0 },
                            { lifeline_fd (LIFELINE_SPAWNER), POLLIN, 0 },
                            { lifeline_fd (LIFELINE_FORMATION), POLLIN, 0 } };
    for (;;) {
        if (poll (fds, ARRAY_LEN (fds), -1) < 0 && errno != EINTR)
            return NULL;
        if (fds[2].revents)
            return NULL;
        if (fds[0].revents)
            on_signal (s);
        if (fds[1].revents)
            on_timer (s);
        on_lifeline (s, LIFELINE_FORMATION, &fds[4], TERMINATED_BY_FORMATION);
        on_lifeline (s, LIFELINE_SPAWNER, &fds[3], TERMINATED_BY_SPAWNER);
    }
}

bool
termination_listen (struct session *s, struct mur_error **err)
{
    struct termination *x = s->rooms.launched->termination;
    uint64_t left_ms = deadline_left_ms (s->deadline);
    if (! left_ms)
        termination_begin (s, TERMINATED_BY_DEADLINE);
    else if (left_ms != UINT64_MAX)
        set_timer (x, left_ms);
    int failed = pthread_create (&x->thread, NULL, listen_thread, s);
    if (failed) {
        errno = failed;
        return mur_fail_errno (err, E_IO_003, "cannot start the thread that waits for signals");
    }
    x->is_listening = true;
    return true;
}

void
termination_disarm (struct session *s)
{
    struct termination *x = s->rooms.launched->termination;
    if (! x)
        return;
    if (x->is_listening) {
        uint64_t one = 1;
        if (write (x->stop_fd, &one, sizeof (one)) == (ssize_t)sizeof (one))
            pthread_join (x->thread, NULL);
    }
    if (x->signal_fd >= 0)
        close (x->signal_fd);
    if (x->timer_fd >= 0)
        close (x->timer_fd);
    if (x->stop_fd >= 0)
        close (x->stop_fd);
    /* The signals stay blocked: the session has its ending and the process is on its way out. One
     * that came too late to be taken must not kill it between here and the exit. */
    free (x);
    s->rooms.launched->termination = NULL;
}
