/* SPDX-License-Identifier: Apache-2.0 */
#include "session/launch/launched.h"

#include "base/alloc.h"
#include "session/state/session.h"

void
launched_new (struct session *s)
{
    s->launched = x_new0 (struct launched);
    deadline_fill (s, &s->launched->deadline);
    s->deadline = &s->launched->deadline;
}

void
launched_free (struct session *s)
{
    s->deadline = NULL;
    free (s->launched);
    s->launched = NULL;
}
