/* SPDX-License-Identifier: Apache-2.0
 *
 * Who acts as the task loop. Under transport: process the calls a harness makes through its bridge
 * run beside the harness's own run, and calls of MCP clients beside whatever runs; each holds this
 * lock but while it waits, so that what belongs to the task loop's thread alone still does.
 *
 * Whatever a call waits in (a command, a guest) lets go of it meanwhile. Elsewhere there is nobody
 * to share with, and these do nothing.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct loop_lock {
    pthread_mutex_t mutex;   /* base/locks.h: loop */
    bool is_shared;          /* a harness was staged, or MCP clients are served */
    _Atomic uintptr_t owner; /* the thread that holds it; 0: none */
};

static inline void
loop_lock_take (struct loop_lock *l)
{
    if (! l->is_shared)
        return;
    pthread_mutex_lock (&l->mutex);
    atomic_store (&l->owner, (uintptr_t)pthread_self ());
}

static inline void
loop_lock_release (struct loop_lock *l)
{
    if (! l->is_shared)
        return;
    atomic_store (&l->owner, 0);
    pthread_mutex_unlock (&l->mutex);
}

/* For a wait that some come to with the lock and some without: lets go of it when this thread holds
 * it; what was returned goes to loop_lock_resume. */
static inline bool
loop_lock_pause (struct loop_lock *l)
{
    bool is_mine = l->is_shared && atomic_load (&l->owner) == (uintptr_t)pthread_self ();
    if (is_mine)
        loop_lock_release (l);
    return is_mine;
}

static inline void
loop_lock_resume (struct loop_lock *l, bool was_mine)
{
    if (was_mine)
        loop_lock_take (l);
}
