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

#include "session/state/session.h"

static inline void
loop_lock_take (struct session *s)
{
    if (s->harness)
        pthread_mutex_lock (&s->loop_lock);
}

static inline void
loop_lock_release (struct session *s)
{
    if (s->harness)
        pthread_mutex_unlock (&s->loop_lock);
}
