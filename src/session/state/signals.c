/* SPDX-License-Identifier: Apache-2.0 */
#include "session/state/signals.h"

sigset_t
signals_of_ending (void)
{
    sigset_t signals;
    sigemptyset (&signals);
    sigaddset (&signals, SIGTERM);
    sigaddset (&signals, SIGINT);
    sigaddset (&signals, SIGQUIT);
    /* Ignored from birth under nohup: a blocked signal would be seen all the same. */
    struct sigaction hangup;
    if (sigaction (SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
        sigaddset (&signals, SIGHUP);
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
