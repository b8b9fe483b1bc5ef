/* SPDX-License-Identifier: Apache-2.0 */
#include "session/loop/reopen.h"

#include "base/alloc.h"
#include "door/tasks/streams.h"
#include "door/tasks/tasks.h"
#include "session/conversation/fence.h"
#include "session/hooks/hooks.h"
#include "session/loop/attempt.h"
#include "session/state/session.h"
#include "session/task/attempt_end.h"
#include "session/task/restart.h"

#include <string.h>

static uint64_t
limit_of (const struct session *s)
{
    return s->policy->lifecycle.max_task_reopens.value;
}

/* Nothing may follow these, whatever a hook says. */
static bool
is_final (const struct session *s, const struct running_task *t)
{
    return t->end.ending == ATTEMPT_CANCELED || cancel_is_raised (t->cancel) ||
           t->onward.was_path_refused || t->end.is_spared ||
           termination_cause (s) != NOT_TERMINATED;
}

static bool
end_without (struct session *s, struct running_task *t, const char *hook)
{
    _cleanup_free_ char *reason = NULL;
    if (t->counts.reopens >= limit_of (s))
        reason = x_asprintf ("hook %s asked for another attempt, but lifecycle.max_task_reopens "
                             "(%llu) is spent",
                             hook, (unsigned long long)limit_of (s));
    else
        reason = x_asprintf ("hook %s asked for another attempt, but inference.max_turns leaves no "
                             "turn for it",
                             hook);
    attempt_refuse_reopen (s, t, reason);
    return false;
}

static void
append_heading (struct buf *b, uint64_t number, const char *hook)
{
    buf_printf (b, "## Reopen %llu (hook %s)\n\n", (unsigned long long)number, hook);
}

static bool
begin_next (struct session *s, struct running_task *t, const char *hook, const char *text)
{
    _cleanup_buf_ struct buf message = { 0 };
    if (! attempt_can_continue (s, t)) {
        append_heading (&message, t->counts.reopens, hook);
        buf_puts (&message, text);
        return restart_with (s, t, RESTART_REOPEN, message.data);
    }
    buf_puts (&message, "The task is not done yet: a check of your last answer asks for more.\n\n");
    append_heading (&message, t->counts.reopens, hook);
    /* A hook quotes what it has seen of a stranger's task. */
    _cleanup_free_ char *source = x_asprintf ("task:%s", task_origin_name (t->task->origin));
    if (t->is_fenced)
        fence_append (&message, &s->fence_word, source, text, strlen (text));
    else
        buf_puts (&message, text);
    attempt_continue_with (s, t, message.data, t->is_fenced ? source : NULL);
    return true;
}

bool
reopen (struct session *s, struct running_task *t)
{
    _cleanup_arena_ struct arena *arena = arena_new ();
    struct hook_answers answers;
    const struct hook_event event = {
        .kind = HOOK_ON_TASK_END,
        .task_end = { .task_id = t->task->id, .exit_status = attempt_ending_name (t->end.ending) },
    };
    hooks_tell (s, t, &event, HOOK_REOPEN_TASK, arena, &answers);
    if (! answers.len || is_final (s, t))
        return false;
    const char *hook = answers.items[0].hook_name, *text = answers.items[0].output->text;
    uint64_t left = attempt_turns_left (s, t);
    if (t->counts.reopens >= limit_of (s) || ! left)
        return end_without (s, t, hook);
    t->counts.reopens++;
    bool is_continued = attempt_can_continue (s, t);
    TRACE (s->trace, NULL, task_reopened, .task_id = t->task->id, .hook_name = hook, .reason = text,
           .reopen_number = t->counts.reopens,
           .attempt_context = is_continued ? "continued" : "restarted",
           .turns_remaining = { left != UINT64_MAX, (int64_t)left });
    _cleanup_free_ char *status = x_asprintf ("reopened by hook %s", hook);
    streams_working (registry_streams (s->registry), t->task, status, (unsigned)t->counts.reopens);
    return begin_next (s, t, hook, text);
}
