/* SPDX-License-Identifier: Apache-2.0 */
#include "session/stage/staged.h"

#include "base/alloc.h"
#include "door/callers/auth.h"
#include "session/state/session.h"

void
staged_new (struct session *s)
{
    s->staged = x_new0 (struct staged);
}

void
staged_free (struct session *s)
{
    if (! s->staged)
        return;
    door_auth_free (s->staged->auth);
    component_freep (&s->staged->script);
    free (s->staged->effective_grants);
    free (s->staged->host_facts);
    free (s->staged);
    s->staged = NULL;
}
