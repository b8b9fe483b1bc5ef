/* SPDX-License-Identifier: Apache-2.0 */
#include "session/state/signals.h"

#include "base/cleanup.h"

static void
add_unhandled (sigset_t *signals, int number)
{
    struct sigaction now;
    if (sigaction (number, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
        sigaddset (signals, number);
}

sigset_t
signals_of_ending (void)
{
    sigset_t signals;
    sigemptyset (&signals);
    sigaddset (&signals, SIGTERM);
    sigaddset (&signals, SIGINT);
    sigaddset (&signals, SIGQUIT);
    /* A closed terminal, batch systems before they kill, timers, `ulimit -t`, power, and whatever
     * else would end the process on the spot. What is ignored from birth, as under nohup, stays so,
     * and what somebody handles is theirs: a blocked signal would be seen all the same. */
    static const int from_outside[] = { SIGHUP,    SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU,  SIGPWR,
                                        SIGVTALRM, SIGPROF, SIGSYS,  SIGPOLL, SIGSTKFLT };
    for (size_t i = 0; i < ARRAY_LEN (from_outside); i++)
        add_unhandled (&signals, from_outside[i]);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        add_unhandled (&signals, number);
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
