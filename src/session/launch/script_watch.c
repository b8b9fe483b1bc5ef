/* SPDX-License-Identifier: Apache-2.0 */
#include "session/launch/script_watch.h"
#include "home/session_dirs.h"

#include "base/diag.h"
#include "session/handoff/handoff.h"
#include "session/launch/roost_session.h"
#include "session/launch/termination.h"
#include "session/state/session.h"
#include "session/state/signals.h"
#include "spawn/child/lifeline.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

#define FORCED_EXIT_STATUS 143

static _noreturn_ void
end_with_lifeline (struct session *s)
{
    diag_stderr_line ("%s", LIFELINE_ENDED_LINE);
    home_session_end (&s->places.dirs);
    roost_session_abandon (s);
    _exit (FORCED_EXIT_STATUS);
}

static void
end_with_signal (const struct script_watch *w)
{
    struct signalfd_siginfo info;
    if (read (w->signal_fd, &info, sizeof (info)) != (ssize_t)sizeof (info))
        return;
    roost_session_abandon (w->session);
    sigset_t one;
    sigemptyset (&one);
    sigaddset (&one, (int)info.ssi_signo);
    pthread_sigmask (SIG_UNBLOCK, &one, NULL);
    raise ((int)info.ssi_signo);
}

static void *
watch (void *arg)
{
    struct script_watch *w = arg;
    struct pollfd fds[] = { { w->stop_fd, POLLIN, 0 },
                            { lifeline_fd (LIFELINE_SPAWNER), POLLIN, 0 },
                            { w->signal_fd, POLLIN, 0 } };
    for (;;) {
        if (poll (fds, ARRAY_LEN (fds), -1) < 0)
            continue;
        if (fds[0].revents)
            return NULL;
        if (fds[1].revents && lifeline_has_ended (LIFELINE_SPAWNER))
            end_with_lifeline (w->session);
        if (fds[2].revents)
            end_with_signal (w);
    }
}

void
script_watch_hold (struct script_watch *w, struct session *s)
{
    *w = (struct script_watch){ .session = s, .stop_fd = -1, .signal_fd = -1 };
    signals_hold (&w->before);
}

bool
script_watch_start (struct script_watch *w, struct mur_error **err)
{
    if (! handoff_credential (w->session)) {
        signals_release (&w->before);
        if (lifeline_fd (LIFELINE_SPAWNER) < 0)
            return true;
    } else {
        sigset_t signals = signals_of_ending ();
        w->signal_fd = signalfd (-1, &signals, SFD_CLOEXEC);
    }
    w->stop_fd = eventfd (0, EFD_CLOEXEC);
    w->is_on = w->stop_fd >= 0 && pthread_create (&w->thread, NULL, watch, w) == 0;
    return w->is_on || mur_fail (err, E_IO_003, "cannot watch the spawner lifeline");
}

void
script_watch_stop (struct script_watch *w)
{
    if (w->is_on) {
        eventfd_write (w->stop_fd, 1);
        pthread_join (w->thread, NULL);
        w->is_on = false;
    }
    cleanup_closep (&w->stop_fd);
    cleanup_closep (&w->signal_fd);
    w->stop_fd = w->signal_fd = -1;
}

void
script_watch_release (struct script_watch *w)
{
    signals_release (&w->before);
}
