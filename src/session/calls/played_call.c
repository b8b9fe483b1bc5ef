/* SPDX-License-Identifier: Apache-2.0 */
#include "session/calls/played_call.h"

#include "base/alloc.h"
#include "replay/play/play_call.h"
#include "session/state/session.h"

#include <string.h>

/* Tools of the runtime that change nothing but the session itself: what they change must change
 * again, and what they say follows from it. */
static bool
is_own_matter (const char *name)
{
    static const char *const names[] = { "switch-driver", "end-without-answer" };
    for (size_t i = 0; i < ARRAY_LEN (names); i++)
        if (strcmp (names[i], name) == 0)
            return true;
    return false;
}

static char *
copy_of (const char *text)
{
    return text ? x_strdup (text) : NULL;
}

static void
fill_shell (const struct rec_shell *from, struct call_outcome *o)
{
    o->has_shell = true;
    o->shell = (struct shell_facts){ .binary = copy_of (from->binary),
                                     .command = copy_of (from->command),
                                     .is_detached = from->work_id != NULL,
                                     .grace_ms = from->grace_ms,
                                     .exit_code = from->exit_code,
                                     .stdout_bytes = from->stdout_bytes,
                                     .stderr_bytes = from->stderr_bytes,
                                     .duration_ms = from->duration_ms };
    if (from->work_id)
        snprintf (o->shell.work_id, sizeof (o->shell.work_id), "%s", from->work_id);
}

static void
serve (struct session *s, const struct rec_call *c, struct call_outcome *o)
{
    call_outcome_clear (o);
    player_output (s->asked->player, c, &o->text);
    o->status = c->is_ok ? TOOL_PASSED : TOOL_ERROR;
    o->is_dispatched = ! c->error;
    o->runtime_error = copy_of (c->error);
    o->state_effect = copy_of (c->state_effect);
    o->resource_id = copy_of (c->resource_id);
    if (c->shell)
        fill_shell (c->shell, o);
}

bool
played_call (struct session *s, struct running_task *t, const struct call *c, bool may_run,
             struct call_outcome *o)
{
    struct player *p = s->asked->player;
    const struct play_call now = { c->turn, c->name, c->input_text };
    const struct rec_call *then = NULL;
    struct mur_error *err = NULL;
    if (! p)
        return false;
    switch (player_call (p, &now, &then, &err)) {
    case PLAY_ANSWER:
        if (! may_run || then->is_skill || is_own_matter (c->name))
            return false;
        serve (s, then, o);
        return true;
    case PLAY_CANCELED:
        o->is_canceled = true;
        return true;
    case PLAY_STOP:
        t->fatal = err;
        return true;
    case PLAY_ASK:
    case PLAY_REFUSED:
        break;
    }
    return false;
}

void
played_call_over (struct session *s, struct running_task *t, const struct call *c,
                  const struct call_outcome *o)
{
    struct mur_error *err = NULL;
    if (s->asked->player &&
        ! player_call_over (s->asked->player, c->turn, o->text.data ? o->text.data : "",
                            o->text.len, &err))
        t->fatal = err;
}
