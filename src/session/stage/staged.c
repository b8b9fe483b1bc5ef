/* SPDX-License-Identifier: Apache-2.0 */
#include "session/stage/staged.h"

#include "base/alloc.h"
#include "door/callers/auth.h"
#include "session/state/session.h"

void
staged_new (struct session *s)
{
    s->rooms.staged = x_new0 (struct staged);
}

void
staged_free (struct session *s)
{
    if (! s->rooms.staged)
        return;
    door_auth_free (s->rooms.staged->auth);
    component_freep (&s->rooms.staged->script);
    free (s->rooms.staged->effective_grants);
    free (s->rooms.staged->host_facts);
    free (s->rooms.staged);
    s->rooms.staged = NULL;
}
