/* SPDX-License-Identifier: Apache-2.0 */
#include "session/launch/launched.h"

#include "base/alloc.h"
#include "session/state/session.h"

void
launched_new (struct session *s)
{
    s->rooms.launched = x_new0 (struct launched);
    deadline_fill (s, &s->rooms.launched->deadline);
    s->deadline = &s->rooms.launched->deadline;
}

void
launched_free (struct session *s)
{
    s->deadline = NULL;
    free (s->rooms.launched);
    s->rooms.launched = NULL;
}
