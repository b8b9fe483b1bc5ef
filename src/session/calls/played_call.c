/* SPDX-License-Identifier: Apache-2.0 */
#include "session/calls/played_call.h"

#include "base/alloc.h"
#include "base/ids.h"
#include "door/tasks/tasks.h"
#include "replay/play/play_call.h"
#include "session/calls/approvals.h"
#include "session/commands/shell.h"
#include "session/state/session.h"

#include <string.h>

/* Tools of the runtime that change nothing but the session itself: what they change must change
 * again, and what they say follows from it. */
static const char *const own_matters[] = { "switch-driver", "end-without-answer", NULL };

/* Tools that other sessions, members or stores take part in. */
static const char *const shared_matters[] = {
    "delegate-task",   "call-member",   "submit-plan", "share-file",
    "fetch-peer-file", "pull-artifact", NULL
};

static bool
is_among (const char *const *names, const char *name)
{
    while (*names && strcmp (*names, name) != 0)
        names++;
    return *names != NULL;
}

static bool
is_own_matter (const char *name)
{
    return is_among (own_matters, name);
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

/* Nothing that another session, or somebody's door, would take part in. */
static bool
may_run_again (const struct session *s, const struct call *c, const struct rec_call *then)
{
    const struct staged_artifact *a = session_artifact (s, c->name);
    bool is_background = then && then->shell && then->shell->work_id;
    /* What a clock or a person ended then is not timed again. */
    bool was_ended = then && then->error &&
                     (strstr (then->error, "cancelled") || strstr (then->error, " deadline"));
    bool is_tool = a && a->role == ROLE_TOOL && ! a->server && (a->component || a->native_path);
    return ! is_background && ! was_ended && (is_tool || (! a && shell_is_offered (s, c->name)));
}

static bool
ask_again (struct session *s, const struct call *c, const struct rec_call *then,
           struct call_outcome *o)
{
    bool runs = then && ! then->is_left_out;
    if (runs && (then->is_skill || is_own_matter (c->name) || may_run_again (s, c, then)))
        return false;
    if (then)
        serve (s, then, o);
    else if (is_among (shared_matters, c->name))
        outcome_set_error (o,
                           "%s is not to be had where a replay goes on: it starts no capsules, "
                           "calls no members and pulls nothing",
                           c->name);
    else
        return false;
    return true;
}

/* As it was put then, on record again. */
static void
refuse_again (struct session *s, struct running_task *t, const struct call *c,
              const struct rec_call *then, struct call_outcome *o)
{
    const struct id id = id_new ("apr_");
    TRACE (s->trace, NULL, approval_requested, .turn = c->turn, .task_id = t->task->id,
           .question_id = id.text, .target = c->name, .rules = then->rules, .what = "");
    TRACE (s->trace, NULL, approval_answered, .turn = c->turn, .task_id = t->task->id,
           .question_id = id.text, .target = c->name, .answer = then->answer);
    if (str_eq (then->answer, "canceled"))
        o->is_canceled = true;
    call_outcome_clear (o);
    approvals_refuse (o, c, then->rules, then->answer);
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
    case PLAY_REFUSED:
        if (! may_run)
            return false;
        refuse_again (s, t, c, then, o);
        return true;
    case PLAY_ASK:
        o->has_run_again = may_run && ! ask_again (s, c, then, o);
        return may_run && ! o->has_run_again;
    case PLAY_COMPARE:
        break;
    }
    return false;
}

void
played_call_over (struct session *s, struct running_task *t, const struct call *c,
                  struct call_outcome *o)
{
    struct mur_error *err = NULL;
    const struct rec_call *then;
    const struct staged_artifact *a = session_artifact (s, c->name);
    const struct play_result now = { o->has_run_again, ! a || ! a->component,
                                     o->text.data ? o->text.data : "", o->text.len };
    if (! s->asked->player || t->fatal)
        return;
    if (! player_call_over (s->asked->player, c->turn, &now, &then, &err))
        t->fatal = err;
    else if (then)
        serve (s, then, o);
}
