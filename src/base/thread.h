/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads on which no signal runs its handler: those of our own in programs that are not, where a
 * pipe whose reader went kills nobody, and one that is confined.
 */
#pragma once

#include <pthread.h>
#include <signal.h>

/* 0, or the errno of the failure. */
static inline int
thread_start (pthread_t *thread, void *(*run) (void *ctx), void *ctx)
{
    sigset_t all, before;
    sigfillset (&all);
    pthread_sigmask (SIG_SETMASK, &all, &before);
    int fault = pthread_create (thread, NULL, run, ctx);
    pthread_sigmask (SIG_SETMASK, &before, NULL);
    return fault;
}
