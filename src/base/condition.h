/* SPDX-License-Identifier: Apache-2.0
 *
 * Condition variables that wait by the monotonic clock, so that nobody who sets the time of day
 * shortens or lengthens a wait.
 */
#pragma once

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
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

/* Until *news is no longer *seen, or <at_ms> of the monotonic clock; *seen then follows. Takes
 * <lock>, which guards *news. */
static inline void
condition_wait_news (pthread_cond_t *c, pthread_mutex_t *lock, const uint64_t *news, uint64_t *seen,
                     uint64_t at_ms)
{
    struct timespec at = { (time_t)(at_ms / 1000), (long)(at_ms % 1000) * 1000000 };
    int status = 0;
    pthread_mutex_lock (lock);
    while (*news == *seen && status != ETIMEDOUT)
        status = pthread_cond_timedwait (c, lock, &at);
    *seen = *news;
    pthread_mutex_unlock (lock);
}
