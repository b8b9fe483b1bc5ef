/* SPDX-License-Identifier: Apache-2.0 */
#include "session/hooks/hook_gate.h"

#include "door/tasks/tasks.h"
#include "session/hooks/hook_events.h"
#include "session/hooks/hooks_internal.h"

#include "base/alloc.h"
#include "base/text.h"
#include "session/commands/shell.h"
#include "session/state/provided.h"
#include "session/state/running_task.h"
#include "session/state/session.h"

#include <string.h>

static bool
has_deny_hooks (const struct session *s)
{
    for (size_t i = 0; s->rooms.hooks && i < s->rooms.hooks->len; i++)
        if (s->rooms.hooks->items[i].is_denying)
            return true;
    return false;
}

/* A name that reaches nothing is the dispatch's own refusal. */
static bool
reaches_something (struct session *s, const char *name)
{
    return provided_find (s, name) || session_artifact (s, name) || shell_is_offered (s, name);
}

/* NULL when the hook lets the call through; else the reason, in the arena. */
static const char *
ask (struct hook *h, struct running_task *t, const struct hook_event *event, struct arena *arena)
{
    struct value value = hook_event_to_value (arena, event);
    struct hook_output output;
    const char *failure;
    h->serving = (struct hook_serving){ .kind = event->kind, .task = t, .turn = t->counts.turns };
    snprintf (h->serving.task_id, sizeof (h->serving.task_id), "%s", t->task->id);
    if (! hook_ask (h, event->kind, &value, arena, &output, &failure)) {
        hook_log (h, event->kind, failure);
        return "the hook failed, and a hook that decides must answer";
    }
    if (output.arm == HOOK_NONE)
        return NULL;
    if (output.arm != HOOK_DENY) {
        hook_discard (h, event->kind, output.arm);
        return "the hook gave an answer that means nothing here";
    }
    return text_is_blank (output.text) ? "the hook gave no reason" : output.text;
}

static void
refuse_call (struct session *s, struct running_task *t, const struct call *call,
             const struct hook *h, enum hook_event_kind kind, const char *reason,
             struct call_outcome *o)
{
    outcome_set_error (o,
                       "%s was denied by the hook %s: %s\nNothing ran. The same call, unchanged, "
                       "will be refused again.",
                       call->name, h->name, reason);
    o->is_refused = true;
    struct mur_error *err = NULL;
    if (! TRACE (s->trace, &err, call_denied, .turn = call->turn, .event = hook_event_name (kind),
                 .hook_name = h->name, .target = call->name, .reason = reason))
        t->fatal = err;
}

bool
hooks_allow (struct session *s, struct running_task *t, const struct call *call,
             struct call_outcome *o)
{
    if (! has_deny_hooks (s) || ! reaches_something (s, call->name))
        return true;
    _cleanup_ (shell_request_clear) struct shell_request request = { 0 };
    bool is_command =
        ! provided_find (s, call->name) && shell_read (s, call->name, call->input, &request);
    _cleanup_free_ char *shown = is_command ? hook_shown_command (request.command) : NULL;
    const struct hook_event tool = { .kind = HOOK_ON_TOOL_CALL,
                                     .tool_call = { .turn = (uint32_t)call->turn,
                                                    .tool_name = call->name,
                                                    .input = call->input_text } };
    const struct hook_event command = { .kind = HOOK_ON_SHELL,
                                        .shell = { .turn = (uint32_t)call->turn,
                                                   .binary = request.binary,
                                                   .command = shown,
                                                   .argv = request.argv.items,
                                                   .script = request.script,
                                                   .recipe = request.recipe } };
    for (size_t i = 0; i < s->rooms.hooks->len; i++) {
        struct hook *h = &s->rooms.hooks->items[i];
        const struct hook_event *event = h->is_watching[HOOK_ON_SHELL] ? &command : &tool;
        if (! h->is_denying || (event == &command && ! is_command))
            continue;
        _cleanup_arena_ struct arena *arena = arena_new ();
        const char *reason = ask (h, t, event, arena);
        if (! reason)
            continue;
        refuse_call (s, t, call, h, event->kind, reason, o);
        return false;
    }
    return true;
}
