/* SPDX-License-Identifier: Apache-2.0 */
#include "session/hooks/hook_events.h"

#include "session/hooks/hooks_internal.h"

#include "base/alloc.h"
#include "door/tasks/streams.h"
#include "door/tasks/tasks.h"
#include "session/commands/shell.h"
#include "session/state/running_task.h"
#include "session/state/session.h"

#include <string.h>

#define COMMAND_SHOWN 200 /* characters */

/* --- inference --- */

/* The messages of the request as a JSON array. Owned. */
static char *
prompt_text (const struct request *r)
{
    const char *start = strstr (r->text.data, "\"messages\":");
    size_t from = start ? (size_t)(start - r->text.data) + strlen ("\"messages\":") : 0;
    return x_asprintf ("%.*s]", (int)(r->messages_end - from), r->text.data + from);
}

static const char *
first_tool (const json_t *content)
{
    for (size_t i = 0; i < json_array_size (content); i++)
        if (str_eq (json_get_string (json_array_get (content, i), "type"), "tool_call"))
            return json_get_string (json_array_get (content, i), "name");
    return NULL;
}

void
hooks_tell_inference (struct session *s, struct running_task *t, const struct request *request,
                      const struct driver_answer *a, uint64_t estimate)
{
    struct hooks *all = s->rooms.hooks;
    if (! all)
        return;
    all->turns++;
    all->input_tokens += estimate;
    all->output_tokens += a->tokens;
    all->shown = (struct hook_answers){ 0 };
    if (! hooks_watch (s, HOOK_ON_INFERENCE))
        return;
    if (all->artifacts)
        arena_free (all->artifacts);
    all->artifacts = arena_new ();
    const char *stop = json_get_string (a->body, "stop_reason");
    const json_t *content = json_object_get (a->body, "content");
    bool calls = str_eq (stop, "tool_call");
    _cleanup_free_ char *prompt = prompt_text (request);
    _cleanup_free_ char *output =
        json_is_array (content) ? json_text (content, JSON_TEXT_SORTED) : NULL;
    const struct hook_event event = {
        .kind = HOOK_ON_INFERENCE,
        .inference = { .turn = (uint32_t)t->counts.turns,
                       .input_tokens = estimate,
                       .output_tokens = a->tokens,
                       .decision = calls                       ? "tool_call"
                                   : str_eq (stop, "end_turn") ? "end_turn"
                                                               : "text",
                       .tool_name = calls ? first_tool (content) : NULL,
                       .prompt = prompt,
                       .output = output,
                       .tools = request->tools },
    };
    hooks_tell (s, t, &event, HOOK_ARTIFACT, all->artifacts, &all->shown);
}

void
hooks_tell_harness_turn (struct session *s, struct running_task *t,
                         const struct trace_inference *turn, const char *text)
{
    struct hooks *all = s->rooms.hooks;
    if (! all)
        return;
    uint64_t input = turn->input_tokens.is_set ? (uint64_t)turn->input_tokens.value : 0,
             output = turn->output_tokens.is_set ? (uint64_t)turn->output_tokens.value : 0;
    all->turns++;
    all->input_tokens += input;
    all->output_tokens += output;
    all->shown = (struct hook_answers){ 0 };
    if (! hooks_watch (s, HOOK_ON_INFERENCE))
        return;
    if (all->artifacts)
        arena_free (all->artifacts);
    all->artifacts = arena_new ();
    const struct hook_event event = { .kind = HOOK_ON_INFERENCE,
                                      .inference = { .turn = (uint32_t)t->counts.turns,
                                                     .input_tokens = input,
                                                     .output_tokens = output,
                                                     .decision = turn->decision,
                                                     .tool_name = turn->tool_name,
                                                     .output = text } };
    hooks_tell (s, t, &event, HOOK_ARTIFACT, all->artifacts, &all->shown);
}

void
hooks_show_artifacts (struct session *s, struct running_task *t)
{
    struct hooks *all = s->rooms.hooks;
    for (size_t i = 0; all && i < all->shown.len; i++) {
        struct stream_artifact artifact = { .tool_name = all->shown.items[i].hook_name,
                                            .content = all->shown.items[i].output->text };
        streams_artifact (registry_streams (s->registry), t->task, &artifact);
    }
    if (all)
        all->shown = (struct hook_answers){ 0 };
}

/* --- calls --- */

char *
hook_shown_command (const char *command)
{
    return x_strndup (command, utf8_first (command, strlen (command), COMMAND_SHOWN));
}

void
hooks_tell_call (struct session *s, struct running_task *t, const struct call *call,
                 const struct call_outcome *o, uint64_t duration_ms)
{
    if (! s->rooms.hooks)
        return;
    s->rooms.hooks->tool_calls++;
    _cleanup_arena_ struct arena *arena = arena_new ();
    struct hook_answers none;
    const struct hook_event event = { .kind = HOOK_ON_TOOL_CALL,
                                      .tool_call = {
                                          .turn = (uint32_t)call->turn,
                                          .tool_name = call->name,
                                          .input = call->input_text,
                                          .has_outcome = true,
                                          .output_bytes = o->text.len,
                                          .duration_ms = duration_ms,
                                          .status = o->status == TOOL_PASSED ? "ok" : "error" } };
    hooks_tell (s, t, &event, HOOK_NONE, arena, &none);
}

void
hooks_tell_shell (struct session *s, struct running_task *t, uint64_t turn,
                  const struct shell_facts *f)
{
    if (! s->rooms.hooks)
        return;
    s->rooms.hooks->shell_calls++;
    _cleanup_arena_ struct arena *arena = arena_new ();
    _cleanup_free_ char *shown = hook_shown_command (f->command);
    struct hook_answers none;
    const struct hook_event event = { .kind = HOOK_ON_SHELL,
                                      .shell = { .turn = (uint32_t)turn,
                                                 .binary = f->binary,
                                                 .command = shown,
                                                 .argv = f->argv.items,
                                                 .script = f->script,
                                                 .recipe = f->recipe,
                                                 .has_outcome = true,
                                                 .exit_code = f->exit_code,
                                                 .out = f->out.data,
                                                 .out_len = f->out.len,
                                                 .err = f->err.data,
                                                 .err_len = f->err.len,
                                                 .stdout_bytes = f->stdout_bytes,
                                                 .stderr_bytes = f->stderr_bytes,
                                                 .duration_ms = f->duration_ms } };
    hooks_tell (s, t, &event, HOOK_NONE, arena, &none);
}
