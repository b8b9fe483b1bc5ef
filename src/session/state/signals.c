/* SPDX-License-Identifier: Apache-2.0 */
#include "session/state/signals.h"

#include "base/cleanup.h"

sigset_t
signals_of_ending (void)
{
    sigset_t signals;
    sigemptyset (&signals);
    sigaddset (&signals, SIGTERM);
    sigaddset (&signals, SIGINT);
    sigaddset (&signals, SIGQUIT);
    /* A closed terminal, batch systems before they kill, timers, `ulimit -t`. What is ignored from
     * birth, as under nohup, stays so: a blocked signal would be seen all the same. */
    static const int from_outside[] = { SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU };
    for (size_t i = 0; i < ARRAY_LEN (from_outside); i++) {
        struct sigaction now;
        if (sigaction (from_outside[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaddset (&signals, from_outside[i]);
    }
    return signals;
}

void
signals_hold (sigset_t *before)
{
    sigset_t signals = signals_of_ending ();
    pthread_sigmask (SIG_BLOCK, &signals, before);
}

void
signals_release (const sigset_t *before)
{
    pthread_sigmask (SIG_SETMASK, before, NULL);
}
