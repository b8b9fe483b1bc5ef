/* SPDX-License-Identifier: Apache-2.0
 *
 * Condition variables that wait by the monotonic clock, so that nobody who sets the time of day
 * shortens or lengthens a wait.
 */
#pragma once

#include <pthread.h>
#include <time.h>

static inline void
condition_init (pthread_cond_t *c)
{
    pthread_condattr_t attributes;
    pthread_condattr_init (&attributes);
    pthread_condattr_setclock (&attributes, CLOCK_MONOTONIC);
    pthread_cond_init (c, &attributes);
    pthread_condattr_destroy (&attributes);
}
