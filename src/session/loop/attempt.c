/* SPDX-License-Identifier: Apache-2.0 */
#include "session/loop/attempt.h"

#include "base/alloc.h"
#include "door/tasks/tasks.h"
#include "session/harness/harness_run.h"
#include "session/hooks/hook_task.h"
#include "session/loop/compaction.h"
#include "session/loop/going.h"
#include "session/loop/played_task.h"
#include "session/loop/seed.h"
#include "session/loop/turn.h"
#include "session/state/session.h"
#include "session/task/attempt_end.h"
#include "session/task/restart.h"
#include "session/task/task_text.h"
#include "session/toolbox/system_prompt.h"
#include "session/toolbox/tools_array.h"

#include <string.h>

bool
attempt_can_continue (const struct session *s, const struct running_task *t)
{
    return s->rooms.harness ? t->harness.session != NULL : t->list.len > 0;
}

static void
add_user (struct running_task *t, const char *text, size_t len, const char *fence)
{
    message_list_add (&t->list, message_new_user (text, len, fence));
    conversation_append (t->record, &t->list);
}

void
attempt_continue_with (struct session *s, struct running_task *t, const char *text,
                       const char *fence)
{
    t->onward.is_continuing = true;
    if (! s->rooms.harness) {
        add_user (t, text, strlen (text), fence);
        return;
    }
    free (t->onward.continuation_text);
    t->onward.continuation_text = x_strdup (text);
}

/* Begins the list anew: what the record holds, when the conversation is threaded, then the task's
 * message. */
static bool
begin_list (struct session *s, struct running_task *t, struct mur_error **err)
{
    message_list_clear (&t->list);
    t->occupancy.has_provider_count = false;
    free (t->held.continuation_id);
    t->held.continuation_id = NULL;
    t->held.acknowledged = 0;
    _cleanup_buf_ struct buf text = { 0 };
    if (! task_text_read (s, &text, err))
        return false;
    hooks_attempt_begin (s, text.data, text.len);
    if (s->asked->player && ! played_load_prior (s, t, err))
        return false;
    if (s->policy->lifecycle.conversation.value == CONVERSATION_THREADED ||
        s->asked->resume.mode != RESUME_NONE)
        conversation_load (t->record, &s->fence_word, &t->list);
    if (s->asked->resume.mode == RESUME_COMPACT && going_first_resume (s)) {
        if (compaction_on_resume (s, t) >= COMPACTION_FAILED)
            return false;
    }
    _cleanup_buf_ struct buf told = { 0 };
    _cleanup_free_ char *source = x_asprintf ("task:%s", task_origin_name (t->task->origin));
    restart_append_task (s, t, source, text.data, text.len, &told);
    add_user (t, told.data, told.len, t->is_fenced ? source : NULL);
    free (t->task_message_id);
    t->task_message_id = x_strdup (t->list.items[t->list.len - 1]->id);
    seed_place (t);
    return true;
}

static void
take_names (const struct session *s, struct strv *names)
{
    strv_free (names);
    for (size_t i = 0; i < s->kit.tool_count; i++)
        strv_push (names, s->kit.tools[i].name);
}

/* Names of <names> that <others> does not have. */
static void
only_in (const struct strv *names, const struct strv *others, struct strv *out)
{
    for (size_t i = 0; i < names->len; i++)
        if (! strv_contains (others, names->items[i]))
            strv_push (out, names->items[i]);
}

/* What the model itself pulled or removed is in the array of its next turn, and what a compaction
 * began anew shows what is there now (session.md 5.4). The set changes by the model's own hand
 * alone, so there is nothing inference.tool_refresh could bring sooner. */
static void
refresh_tools (struct session *s, struct running_task *t, struct request *request,
               struct strv *names)
{
    static char *const none[] = { NULL };
    _cleanup_strv_ struct strv now = { 0 }, added = { 0 }, removed = { 0 };
    char *tools = tools_array_text (s);
    if (strcmp (tools, request->tools) == 0) {
        free (tools);
        return;
    }
    request_set_tools (request, tools);
    tools_array_log (s, tools);
    t->occupancy.has_provider_count = false;
    take_names (s, &now);
    only_in (&now, names, &added);
    only_in (names, &now, &removed);
    TRACE (s->trace, NULL, tools_refreshed, .turn = t->counts.turns, .task_id = t->task->id,
           .trigger = t->occupancy.has_compacted ? "compaction" : "agent",
           .added = added.len ? added.items : none, .removed = removed.len ? removed.items : none,
           .tools = now.len ? now.items : none);
    take_names (s, names);
}

static void
run_turns (struct session *s, struct running_task *t)
{
    _cleanup_strv_ struct strv names = { 0 };
    uint64_t generation = s->kit.tools_generation;
    take_names (s, &names);
    char *tools = tools_array_text (s);
    tools_array_log (s, tools);
    struct request request;
    request_init (&request, s->choices.primary.model, tools, system_text (s), s->manifest->name,
                  s->manifest->version, t->task->context_id);
    bool goes_on = true;
    while (goes_on && attempt_turns_left (s, t)) {
        if (generation != s->kit.tools_generation) {
            generation = s->kit.tools_generation;
            refresh_tools (s, t, &request, &names);
        }
        t->occupancy.has_compacted = false;
        goes_on = turn_run (s, t, &request);
    }
    if (goes_on)
        attempt_end_max_turns (s, t);
    request_free (&request);
}

void
attempt_run (struct session *s, struct running_task *t)
{
    _cleanup_error_ struct mur_error *err = NULL;
    attempt_end_clear (&t->end);
    conversation_new_attempt (t->record);
    if (t->onward.is_continuing)
        hooks_attempt_begin (s, NULL, 0);
    if (attempt_take_refusals (s, t))
        return;
    if (s->rooms.harness) {
        harness_attempt_run (s, t);
        return;
    }
    if (! t->onward.is_continuing && ! begin_list (s, t, &err)) {
        if (! attempt_take_refusals (s, t) && err)
            attempt_error (s, t, steal_ptr (&err));
        return;
    }
    run_turns (s, t);
}
