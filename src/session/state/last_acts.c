/* SPDX-License-Identifier: Apache-2.0 */
#include "session/state/last_acts.h"

#include "session/state/session.h"

#include <assert.h>

void
last_acts_add (struct session *s, last_act_fn *fn)
{
    struct last_acts *l = &s->last_acts;
    for (size_t i = 0; i < l->len; i++)
        if (l->items[i] == fn)
            return;
    assert (l->len < LAST_ACTS_MAX);
    l->items[l->len++] = fn;
}

void
last_acts_run (struct session *s)
{
    for (size_t i = 0; i < s->last_acts.len; i++)
        s->last_acts.items[i](s);
}
