/* SPDX-License-Identifier: Apache-2.0
 *
 * Who acts as the task loop. Under transport: process the calls a harness makes through its bridge
 * run beside the harness's own run; each holds this lock but while it waits, so that what belongs
 * to the task loop's thread alone still does.
 *
 * Callers: harness_run.c and bridge_call.c take it; whatever a call waits in (a command, a guest)
 * lets go of it meanwhile. Elsewhere there is nobody to share with, and these do nothing.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

struct loop_lock {
    pthread_mutex_t mutex; /* base/locks.h: loop */
    bool is_shared;        /* a harness was staged */
};

static inline void
loop_lock_take (struct loop_lock *l)
{
    if (l->is_shared)
        pthread_mutex_lock (&l->mutex);
}

static inline void
loop_lock_release (struct loop_lock *l)
{
    if (l->is_shared)
        pthread_mutex_unlock (&l->mutex);
}
