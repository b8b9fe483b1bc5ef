/* SPDX-License-Identifier: Apache-2.0 */
#include "session/commands/processes_internal.h"

#include "base/alloc.h"
#include "session/state/session.h"

void
processes_new (struct session *s)
{
    s->processes = x_new0 (struct processes);
    pthread_mutex_init (&s->processes->lock, NULL);
}

void
processes_free (struct session *s)
{
    if (! s->processes)
        return;
    pthread_mutex_destroy (&s->processes->lock);
    free (s->processes);
    s->processes = NULL;
}
