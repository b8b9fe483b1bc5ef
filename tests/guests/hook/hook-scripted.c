/* SPDX-License-Identifier: Apache-2.0
 *
 * Hook: writes each event it is told as a JSON line to events.log in its folder, and answers what
 * its config says.
 *
 * `config: {on: {EVENT: {...}}}`, where EVENT is a function's name, or before-tool-call and
 * before-shell for a call that has not run. Members: `answer` (an arm's name, "error" or "trap"),
 * `text`, `messages` ([{role, content, id?}]), `manifests` ([{name, content}]), `times` (only so
 * often; 0: always), `spin` (never returns), `clock` (the time replaces {{asked}} in texts), `ask`
 * (a prompt for run-inference; its answer replaces
 * {{asked}} in texts), `model`, `read` (logs the task's texts and the conversation), `env` (logs
 * the variables of these names), `scores` (text appended to eval.jsonl).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "murmur_sdk.h"

#include "guest.h"

typedef exports_murmur_hook_lifecycle_hook_output_t output_t;
typedef exports_murmur_hook_lifecycle_list_message_t messages_t;

#define EVENTS_MAX 16

static struct {
    char name[24];
    int64_t calls;
} counts[EVENTS_MAX];

static int64_t
count_call (const char *event)
{
    for (size_t i = 0; i < EVENTS_MAX; i++) {
        if (! counts[i].name[0])
            snprintf (counts[i].name, sizeof (counts[i].name), "%s", event);
        if (strcmp (counts[i].name, event) == 0)
            return ++counts[i].calls;
    }
    return 0;
}

/* --- The line of an event --- */

static void
add_text (struct mur_text *line, const char *key, const guest_string_t *text)
{
    mur_text_key (line, key);
    mur_text_json_bytes (line, (const char *)text->ptr, text->len);
}

static void
add_optional (struct mur_text *line, const char *key, const guest_option_string_t *text)
{
    if (text->is_some)
        add_text (line, key, &text->val);
}

static void
add_number (struct mur_text *line, const char *key, uint64_t number)
{
    mur_text_key (line, key);
    mur_text_printf (line, "%llu", (unsigned long long)number);
}

static void
add_strings (struct mur_text *line, const char *key, const guest_list_string_t *list)
{
    mur_text_key (line, key);
    mur_text_puts (line, "[");
    for (size_t i = 0; i < list->len; i++) {
        mur_text_comma (line);
        mur_text_json_bytes (line, (const char *)list->ptr[i].ptr, list->ptr[i].len);
    }
    mur_text_puts (line, "]");
}

/* The two worlds' messages are of two types with the same members. */
#define add_message(line, m) add_message_parts (line, &(m)->role, &(m)->content, &(m)->id)

static void
add_message_parts (struct mur_text *line, const guest_string_t *role, const guest_string_t *content,
                   const guest_option_string_t *id)
{
    mur_text_comma (line);
    mur_text_puts (line, "{");
    add_text (line, "role", role);
    add_text (line, "content", content);
    add_optional (line, "id", id);
    mur_text_puts (line, "}");
}

static void
write_line (struct mur_text *line)
{
    mur_text_puts (line, "}\n");
    FILE *file = fopen ("events.log", "a");
    if (file != NULL) {
        fwrite (line->data, 1, line->len, file);
        fclose (file);
    }
    mur_text_free (line);
}

/* --- What it may read --- */

static const char *const io_errors[] = { "not-granted", "no-task", "no-output", "out-of-range" };

static void
read_texts (struct mur_text *line)
{
    guest_string_t text;
    uint64_t len;
    murmur_task_io_read_io_error_t error;
    if (murmur_task_io_read_read_input (MURMUR_TASK_IO_READ_TASK_INPUT_FORM_AS_GIVEN, 0, 1000,
                                        &text, &error))
        add_text (line, "input", &text);
    else
        mur_text_string (line, "input_error", io_errors[error]);
    if (murmur_task_io_read_input_len (MURMUR_TASK_IO_READ_TASK_INPUT_FORM_ORIGINAL, &len, &error))
        add_number (line, "original_bytes", len);
    if (murmur_task_io_read_read_output (0, 1000, &text, &error))
        add_text (line, "output", &text);
    else
        mur_text_string (line, "output_error", io_errors[error]);
    if (! murmur_task_io_read_read_input (MURMUR_TASK_IO_READ_TASK_INPUT_FORM_AS_GIVEN, 1 << 20, 1,
                                          &text, &error))
        mur_text_string (line, "far_error", io_errors[error]);
}

static void
read_conversation (struct mur_text *line)
{
    guest_string_t error, cursor;
    murmur_conversation_read_message_page_t page;
    bool has_cursor = false;
    mur_text_key (line, "conversation");
    mur_text_puts (line, "[");
    for (;;) {
        if (! murmur_conversation_read_read_messages (has_cursor ? &cursor : NULL, 2, &page,
                                                      &error)) {
            mur_text_puts (line, "]");
            add_text (line, "conversation_error", &error);
            return;
        }
        for (size_t i = 0; i < page.messages.len; i++)
            add_message (line, &page.messages.ptr[i]);
        has_cursor = page.next_cursor.is_some;
        if (! has_cursor)
            break;
        cursor = page.next_cursor.val;
    }
    mur_text_puts (line, "]");
    add_number (line, "conversation_total", page.total);
}

/* --- What it answers --- */

static void
ask (struct mur_text *line, const char *prompt, const char *model, char **asked)
{
    murmur_hook_lifecycle_message_t message = { 0 };
    murmur_runtime_inference_inference_request_t request = { 0 };
    murmur_runtime_inference_inference_response_t response;
    guest_string_t error;
    guest_string_dup (&message.role, "user");
    guest_string_dup (&message.content, prompt);
    request.messages.ptr = &message;
    request.messages.len = 1;
    if (model != NULL) {
        request.model.is_some = true;
        guest_string_dup (&request.model.val, model);
    }
    if (! murmur_runtime_inference_run_inference (&request, &response, &error)) {
        add_text (line, "ask_error", &error);
        return;
    }
    add_text (line, "asked", &response.text);
    add_text (line, "model_used", &response.model_used);
    add_number (line, "asked_output_tokens", response.output_tokens);
    *asked = mur_format ("%.*s", (int)response.text.len, (const char *)response.text.ptr);
}

/* The member's text with {{asked}} replaced. */
static void
set_text (guest_string_t *to, const struct mur_json *json, mur_node node, const char *asked)
{
    char *text = mur_json_text (json, node);
    char *mark = text != NULL ? strstr (text, "{{asked}}") : NULL;
    if (mark != NULL)
        text = mur_format ("%.*s%s%s", (int)(mark - text), text, asked != NULL ? asked : "",
                           mark + strlen ("{{asked}}"));
    guest_string_dup (to, text != NULL ? text : "");
}

static void
set_messages (messages_t *to, const struct mur_json *json, mur_node list, const char *asked)
{
    to->len = mur_json_count (json, list);
    to->ptr = calloc (to->len + 1, sizeof (*to->ptr));
    for (size_t i = 0; i < to->len; i++) {
        mur_node m = mur_json_at (json, list, i);
        set_text (&to->ptr[i].role, json, mur_json_get (json, m, "role"), NULL);
        set_text (&to->ptr[i].content, json, mur_json_get (json, m, "content"), asked);
        mur_node id = mur_json_get (json, m, "id");
        to->ptr[i].id.is_some = id >= 0;
        if (id >= 0)
            set_text (&to->ptr[i].id.val, json, id, NULL);
    }
}

static void
set_manifests (output_t *ret, const struct mur_json *json, mur_node list)
{
    ret->val.write_manifests.len = mur_json_count (json, list);
    ret->val.write_manifests.ptr =
        calloc (ret->val.write_manifests.len + 1, sizeof (*ret->val.write_manifests.ptr));
    for (size_t i = 0; i < ret->val.write_manifests.len; i++) {
        mur_node m = mur_json_at (json, list, i);
        set_text (&ret->val.write_manifests.ptr[i].binary_name, json,
                  mur_json_get (json, m, "name"), NULL);
        set_text (&ret->val.write_manifests.ptr[i].content, json, mur_json_get (json, m, "content"),
                  NULL);
    }
}

static bool
answer (const struct mur_json *json, mur_node rule, const char *asked, output_t *ret,
        guest_string_t *err)
{
    mur_node kind = mur_json_get (json, rule, "answer"), text = mur_json_get (json, rule, "text");
    if (mur_json_is (json, kind, "trap"))
        __builtin_trap ();
    if (mur_json_is (json, kind, "error")) {
        set_text (err, json, text, asked);
        return false;
    }
    if (mur_json_is (json, kind, "artifact")) {
        ret->tag = EXPORTS_MURMUR_HOOK_LIFECYCLE_HOOK_OUTPUT_ARTIFACT;
        set_text (&ret->val.artifact, json, text, asked);
    } else if (mur_json_is (json, kind, "reopen-task")) {
        ret->tag = EXPORTS_MURMUR_HOOK_LIFECYCLE_HOOK_OUTPUT_REOPEN_TASK;
        set_text (&ret->val.reopen_task, json, text, asked);
    } else if (mur_json_is (json, kind, "deny")) {
        ret->tag = EXPORTS_MURMUR_HOOK_LIFECYCLE_HOOK_OUTPUT_DENY;
        set_text (&ret->val.deny, json, text, asked);
    } else if (mur_json_is (json, kind, "replace-context")) {
        ret->tag = EXPORTS_MURMUR_HOOK_LIFECYCLE_HOOK_OUTPUT_REPLACE_CONTEXT;
        set_messages (&ret->val.replace_context, json, mur_json_get (json, rule, "messages"),
                      asked);
    } else if (mur_json_is (json, kind, "seed-context")) {
        ret->tag = EXPORTS_MURMUR_HOOK_LIFECYCLE_HOOK_OUTPUT_SEED_CONTEXT;
        set_messages (&ret->val.seed_context, json, mur_json_get (json, rule, "messages"), asked);
    } else if (mur_json_is (json, kind, "write-manifests")) {
        ret->tag = EXPORTS_MURMUR_HOOK_LIFECYCLE_HOOK_OUTPUT_WRITE_MANIFESTS;
        set_manifests (ret, json, mur_json_get (json, rule, "manifests"));
    }
    return true;
}

/* --- What it leaves beside its lines --- */

static void
log_env (struct mur_text *line, const struct mur_json *json, mur_node names)
{
    for (size_t i = 0; i < mur_json_count (json, names); i++) {
        char *name = mur_json_text (json, mur_json_at (json, names, i));
        const char *value = mur_env (name, NULL);
        if (value != NULL)
            mur_text_string (line, name, value);
    }
}

static void
leave_scores (const char *text)
{
    FILE *file = text != NULL ? fopen ("eval.jsonl", "a") : NULL;
    if (file != NULL) {
        fputs (text, file);
        fclose (file);
    }
}

/* Finishes the line of an event and answers it. */
static bool
finish (struct mur_text *line, const char *event, output_t *ret, guest_string_t *err)
{
    struct mur_json *config = mur_config ();
    mur_node rule = mur_json_get (config, mur_json_get (config, 0, "on"), event);
    int64_t times = mur_json_int (config, mur_json_get (config, rule, "times"), 0);
    char *asked = NULL, *prompt = mur_json_text (config, mur_json_get (config, rule, "ask"));
    *ret = (output_t){ .tag = EXPORTS_MURMUR_HOOK_LIFECYCLE_HOOK_OUTPUT_NONE };
    bool is_due = times == 0 || count_call (event) <= times;
    if (prompt != NULL && is_due)
        ask (line, prompt, mur_json_text (config, mur_json_get (config, rule, "model")), &asked);
    if (mur_json_bool (config, mur_json_get (config, rule, "clock"), false)) {
        struct timespec now;
        clock_gettime (CLOCK_REALTIME, &now);
        asked = mur_format ("%lld.%09ld", (long long)now.tv_sec, now.tv_nsec);
    }
    if (mur_json_bool (config, mur_json_get (config, rule, "read"), false)) {
        read_texts (line);
        read_conversation (line);
        guest_string_t sample;
        guest_string_set (&sample, "hello world");
        add_number (line, "tokens", murmur_runtime_tokens_count (&sample));
    }
    log_env (line, config, mur_json_get (config, rule, "env"));
    leave_scores (mur_json_text (config, mur_json_get (config, rule, "scores")));
    write_line (line);
    for (volatile bool spins = mur_json_bool (config, mur_json_get (config, rule, "spin"), false);
         spins;)
        ;
    return ! is_due || answer (config, rule, asked, ret, err);
}

static struct mur_text
begin (const char *event)
{
    struct mur_text line = { 0 };
    mur_text_puts (&line, "{");
    mur_text_string (&line, "event", event);
    return line;
}

/* --- The functions --- */

bool
exports_murmur_hook_lifecycle_on_stage (exports_murmur_hook_lifecycle_stage_event_t *event,
                                        output_t *ret, guest_string_t *err)
{
    struct mur_text line = begin ("on-stage");
    add_strings (&line, "shell_allow", &event->shell_allow);
    return finish (&line, "on-stage", ret, err);
}

bool
exports_murmur_hook_lifecycle_on_session_start (
    exports_murmur_hook_lifecycle_session_context_t *ctx, output_t *ret, guest_string_t *err)
{
    struct mur_text line = begin ("on-session-start");
    add_text (&line, "capsule_name", &ctx->capsule_name);
    add_text (&line, "capsule_version", &ctx->capsule_version);
    add_text (&line, "session_id", &ctx->session_id);
    add_text (&line, "model", &ctx->model);
    add_strings (&line, "capabilities", &ctx->capabilities);
    return finish (&line, "on-session-start", ret, err);
}

bool
exports_murmur_hook_lifecycle_on_task_start (
    exports_murmur_hook_lifecycle_task_start_event_t *event, output_t *ret, guest_string_t *err)
{
    struct mur_text line = begin ("on-task-start");
    add_text (&line, "task_id", &event->task_id);
    add_text (&line, "context_id", &event->context_id);
    add_text (&line, "source", &event->source);
    add_number (&line, "input_bytes", event->input_bytes);
    add_number (&line, "budget_tokens", event->budget_tokens);
    add_number (&line, "context_window", event->context_window);
    add_number (&line, "prior_tokens", event->prior_tokens);
    return finish (&line, "on-task-start", ret, err);
}

bool
exports_murmur_hook_lifecycle_on_inference (exports_murmur_hook_lifecycle_inference_event_t *event,
                                            output_t *ret, guest_string_t *err)
{
    struct mur_text line = begin ("on-inference");
    add_number (&line, "turn", event->turn);
    add_number (&line, "input_tokens", event->input_tokens);
    add_number (&line, "output_tokens", event->output_tokens);
    add_text (&line, "decision", &event->decision);
    add_optional (&line, "tool_name", &event->tool_name);
    add_optional (&line, "prompt", &event->prompt);
    add_optional (&line, "output", &event->output);
    add_optional (&line, "tools", &event->tools);
    return finish (&line, "on-inference", ret, err);
}

bool
exports_murmur_hook_lifecycle_on_tool_call (exports_murmur_hook_lifecycle_tool_event_t *event,
                                            output_t *ret, guest_string_t *err)
{
    const char *name = event->outcome.is_some ? "on-tool-call" : "before-tool-call";
    struct mur_text line = begin (name);
    add_number (&line, "turn", event->turn);
    add_text (&line, "tool_name", &event->tool_name);
    add_number (&line, "input_bytes", event->input_bytes);
    add_text (&line, "input", &event->input);
    if (event->outcome.is_some) {
        add_number (&line, "output_bytes", event->outcome.val.output_bytes);
        add_text (&line, "status", &event->outcome.val.status);
    }
    return finish (&line, name, ret, err);
}

bool
exports_murmur_hook_lifecycle_on_shell (exports_murmur_hook_lifecycle_shell_event_t *event,
                                        output_t *ret, guest_string_t *err)
{
    const char *name = event->outcome.is_some ? "on-shell" : "before-shell";
    struct mur_text line = begin (name);
    add_number (&line, "turn", event->turn);
    add_text (&line, "binary", &event->binary);
    add_text (&line, "command", &event->command);
    add_strings (&line, "argv", &event->argv);
    add_optional (&line, "script", &event->script);
    add_optional (&line, "recipe", &event->recipe);
    if (event->outcome.is_some) {
        mur_text_key (&line, "exit_code");
        mur_text_printf (&line, "%d", event->outcome.val.exit_code);
        add_text (&line, "stdout", &event->outcome.val.stdout_);
        add_text (&line, "stderr", &event->outcome.val.stderr_);
    }
    return finish (&line, name, ret, err);
}

bool
exports_murmur_hook_lifecycle_on_compaction (
    exports_murmur_hook_lifecycle_compaction_event_t *event, output_t *ret, guest_string_t *err)
{
    struct mur_text line = begin ("on-compaction");
    mur_text_key (&line, "messages");
    mur_text_puts (&line, "[");
    for (size_t i = 0; i < event->messages.len; i++)
        add_message (&line, &event->messages.ptr[i]);
    mur_text_puts (&line, "]");
    add_number (&line, "session_tokens", event->session_tokens);
    mur_text_key (&line, "threshold");
    mur_text_printf (&line, "%g", event->threshold);
    add_optional (&line, "model", &event->model);
    add_optional (&line, "system_prompt", &event->system_prompt);
    return finish (&line, "on-compaction", ret, err);
}

bool
exports_murmur_hook_lifecycle_on_task_end (exports_murmur_hook_lifecycle_task_end_event_t *event,
                                           output_t *ret, guest_string_t *err)
{
    struct mur_text line = begin ("on-task-end");
    add_text (&line, "task_id", &event->task_id);
    add_text (&line, "exit_status", &event->exit_status);
    return finish (&line, "on-task-end", ret, err);
}

bool
exports_murmur_hook_lifecycle_on_session_end (
    exports_murmur_hook_lifecycle_session_end_event_t *event, output_t *ret, guest_string_t *err)
{
    struct mur_text line = begin ("on-session-end");
    add_number (&line, "total_turns", event->total_turns);
    add_number (&line, "total_tool_calls", event->total_tool_calls);
    add_number (&line, "total_shell_calls", event->total_shell_calls);
    add_text (&line, "exit_status", &event->exit_status);
    return finish (&line, "on-session-end", ret, err);
}
