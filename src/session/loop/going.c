/* SPDX-License-Identifier: Apache-2.0 */
#include "session/loop/going.h"

#include "base/alloc.h"
#include "session/state/session.h"

struct going {
    const char *compaction_prompt;
    bool has_compacted_resume, has_cut_warning;
};

void
going_new (struct session *s)
{
    s->rooms.going = x_new0 (struct going);
}

void
going_free (struct session *s)
{
    free (s->rooms.going);
    s->rooms.going = NULL;
}

void
going_set_compaction_prompt (struct session *s, const char *prompt)
{
    s->rooms.going->compaction_prompt = prompt;
}

const char *
going_compaction_prompt (const struct session *s)
{
    return s->rooms.going->compaction_prompt;
}

static bool
is_first (bool *was_before)
{
    bool is_new = ! *was_before;
    *was_before = true;
    return is_new;
}

bool
going_first_resume (struct session *s)
{
    return is_first (&s->rooms.going->has_compacted_resume);
}

bool
going_first_cut (struct session *s)
{
    return is_first (&s->rooms.going->has_cut_warning);
}
