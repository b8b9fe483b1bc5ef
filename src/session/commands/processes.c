/* SPDX-License-Identifier: Apache-2.0 */
#include "session/commands/processes_internal.h"

#include "base/alloc.h"
#include "session/state/session.h"

void
processes_new (struct session *s)
{
    s->rooms.processes = x_new0 (struct processes);
    pthread_mutex_init (&s->rooms.processes->lock, NULL);
}

void
processes_free (struct session *s)
{
    if (! s->rooms.processes)
        return;
    pthread_mutex_destroy (&s->rooms.processes->lock);
    free (s->rooms.processes);
    s->rooms.processes = NULL;
}
