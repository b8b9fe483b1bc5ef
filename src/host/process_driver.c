/* SPDX-License-Identifier: Apache-2.0 */
#include "host/process_driver.h"
#include "engine/guest.h"

#include "base/alloc.h"
#include "host/hook.h"

#include <string.h>

const char host_process_interface[] = "murmur:driver/process@0.3.0";

static const char *const interrupt_names[] = {
    [INTERRUPT_STDIN_MESSAGE] = "stdin-message",
    [INTERRUPT_SIGNAL_INT] = "signal-int",
    [INTERRUPT_UNSUPPORTED] = "unsupported",
};

static const char *const failure_names[] = {
    [FAILURE_AUTH] = "auth",           [FAILURE_QUOTA] = "quota",
    [FAILURE_MAX_TURNS] = "max-turns", [FAILURE_CANCELED] = "canceled",
    [FAILURE_OTHER] = "other",         [FAILURE_HARNESS_ERROR] = "harness-error",
};

static const char *const event_names[PROCESS_EVENT_KINDS] = {
    [PROCESS_SESSION_STARTED] = "session-started",
    [PROCESS_TEXT_DELTA] = "text-delta",
    [PROCESS_TEXT] = "text",
    [PROCESS_THINKING_DELTA] = "thinking-delta",
    [PROCESS_THINKING] = "thinking",
    [PROCESS_TOOL_CALL] = "tool-call",
    [PROCESS_TOOL_RESULT] = "tool-result",
    [PROCESS_RETRY] = "retry",
    [PROCESS_USAGE] = "usage",
    [PROCESS_TURN_END] = "turn-end",
    [PROCESS_TURN_FAILED] = "turn-failed",
    [PROCESS_NOTE] = "note",
    [PROCESS_TOOL_CALL_STARTED] = "tool-call-started",
    [PROCESS_TOOL_CALL_PROGRESS] = "tool-call-progress",
};

static const char *const usage_names[USAGE_MEMBERS] = {
    [USAGE_INPUT] = "input",           [USAGE_OUTPUT] = "output",
    [USAGE_CACHE_READ] = "cache-read", [USAGE_CACHE_CREATION] = "cache-creation",
    [USAGE_THINKING] = "thinking",
};

const char *
interrupt_method_name (enum interrupt_method method)
{
    return interrupt_names[method];
}

const char *
failure_kind_name (enum failure_kind kind)
{
    return failure_names[kind];
}

/* --- from values --- */

static bool
take_enum (const struct value *v, const char *const *names, size_t count, unsigned *out)
{
    if (! v || v->kind != VALUE_ENUM)
        return false;
    for (unsigned i = 0; i < count; i++)
        if (strcmp (v->variant.name, names[i]) == 0) {
            *out = i;
            return true;
        }
    return false;
}

static bool
take_texts (const struct value *v, struct arena *arena, struct text_list *out)
{
    if (! v || v->kind != VALUE_LIST)
        return false;
    out->items = arena_new_array (arena, const char *, v->list.len + 1);
    out->len = v->list.len;
    for (size_t i = 0; i < v->list.len; i++)
        if (! (out->items[i] = value_text (&v->list.items[i], NULL)))
            return false;
    return true;
}

static bool
take_bool (const struct value *v, bool *out)
{
    *out = v && v->kind == VALUE_BOOL && v->boolean;
    return v && v->kind == VALUE_BOOL;
}

static bool
take_text (const struct value *record, const char *key, const char **out, size_t *len)
{
    *out = value_text (value_field (record, key), len);
    return *out != NULL;
}

/* option<list<u8>> */
static bool
take_bytes (const struct value *v, struct arena *arena, struct process_bytes *out)
{
    *out = (struct process_bytes){ 0 };
    if (! v || v->kind != VALUE_OPTION)
        return false;
    if (! v->option)
        return true;
    if (v->option->kind != VALUE_LIST)
        return false;
    size_t len = v->option->list.len;
    char *data = arena_alloc (arena, len + 1);
    for (size_t i = 0; i < len; i++)
        data[i] = (char)v->option->list.items[i].u;
    data[len] = '\0';
    *out = (struct process_bytes){ true, data, len };
    return true;
}

static bool
take_description (const struct value *v, struct arena *a, struct process_description *out)
{
    unsigned method;
    if (! take_text (v, "harness", &out->harness, NULL) ||
        ! take_text (v, "binary", &out->binary, NULL) ||
        ! take_texts (value_field (v, "version-args"), a, &out->version_args) ||
        ! take_texts (value_field (v, "tested-versions"), a, &out->tested_versions) ||
        ! take_enum (value_field (v, "interrupt"), interrupt_names, ARRAY_LEN (interrupt_names),
                     &method) ||
        ! take_texts (value_field (v, "required-env"), a, &out->required_env) ||
        ! take_bool (value_field (v, "streams-text"), &out->streams_text) ||
        ! take_bool (value_field (v, "reports-usage"), &out->reports_usage))
        return false;
    out->interrupt = (enum interrupt_method)method;
    return true;
}

static bool
take_env (const struct value *v, struct arena *a, struct process_plan *out)
{
    if (! v || v->kind != VALUE_LIST)
        return false;
    out->env = arena_new_array (a, struct process_variable, v->list.len + 1);
    out->env_len = v->list.len;
    for (size_t i = 0; i < v->list.len; i++) {
        const struct value *pair = &v->list.items[i];
        if (pair->kind != VALUE_TUPLE || pair->list.len != 2)
            return false;
        out->env[i].name = value_text (&pair->list.items[0], NULL);
        out->env[i].value = value_text (&pair->list.items[1], NULL);
        if (! out->env[i].name || ! out->env[i].value)
            return false;
    }
    return true;
}

static bool
take_files (const struct value *v, struct arena *a, struct process_plan *out)
{
    if (! v || v->kind != VALUE_LIST)
        return false;
    out->files = arena_new_array (a, struct process_file, v->list.len + 1);
    out->file_count = v->list.len;
    for (size_t i = 0; i < v->list.len; i++) {
        struct process_file *f = &out->files[i];
        if (! take_text (&v->list.items[i], "name", &f->name, NULL) ||
            ! take_text (&v->list.items[i], "contents", &f->contents, &f->contents_len))
            return false;
    }
    return true;
}

static bool
take_plan (const struct value *v, struct arena *a, struct process_plan *out)
{
    return take_texts (value_field (v, "args"), a, &out->args) &&
           take_env (value_field (v, "env-set"), a, out) &&
           take_files (value_field (v, "files"), a, out) &&
           take_bytes (value_field (v, "stdin"), a, &out->stdin_bytes) &&
           take_bool (value_field (v, "keep-stdin-open"), &out->keeps_stdin_open) &&
           take_bytes (value_field (v, "interrupt-stdin"), a, &out->interrupt_bytes);
}

static void
take_usage (const struct value *v, struct process_usage *out)
{
    for (size_t i = 0; i < USAGE_MEMBERS; i++) {
        const struct value *member = value_field (v, usage_names[i]);
        out->is_set[i] = member && member->kind == VALUE_OPTION && member->option;
        out->value[i] = out->is_set[i] ? member->option->u : 0;
    }
}

static bool
take_payload (const struct value *v, struct process_event *e)
{
    const struct value *number;
    unsigned kind;
    switch (e->kind) {
    case PROCESS_SESSION_STARTED:
        e->model = value_text (value_field (v, "model"), NULL);
        return take_text (v, "id", &e->id, NULL) && take_text (v, "auth", &e->name, NULL);
    case PROCESS_TEXT_DELTA:
    case PROCESS_TEXT:
    case PROCESS_THINKING_DELTA:
    case PROCESS_THINKING:
    case PROCESS_TURN_END:
    case PROCESS_NOTE:
        e->text = value_text (v, &e->text_len);
        return e->text != NULL;
    case PROCESS_TOOL_CALL:
        return take_text (v, "id", &e->id, NULL) && take_text (v, "name", &e->name, NULL) &&
               take_text (v, "input", &e->input, NULL);
    case PROCESS_TOOL_RESULT:
        return take_text (v, "id", &e->id, NULL) &&
               take_text (v, "output", &e->text, &e->text_len) &&
               take_bool (value_field (v, "is-error"), &e->is_error);
    case PROCESS_RETRY:
        number = value_field (v, "attempt");
        e->attempt = number ? (uint32_t)number->u : 0;
        return take_text (v, "reason", &e->text, &e->text_len);
    case PROCESS_USAGE:
        take_usage (v, &e->usage);
        return true;
    case PROCESS_TURN_FAILED:
        if (! take_enum (value_field (v, "kind"), failure_names, ARRAY_LEN (failure_names), &kind))
            return false;
        e->failure = (enum failure_kind)kind;
        return take_text (v, "message", &e->text, &e->text_len);
    case PROCESS_TOOL_CALL_STARTED:
        return take_text (v, "id", &e->id, NULL) && take_text (v, "name", &e->name, NULL);
    case PROCESS_TOOL_CALL_PROGRESS:
        number = value_field (v, "input-bytes");
        e->input_bytes = number ? number->u : 0;
        return take_text (v, "id", &e->id, NULL);
    case PROCESS_EVENT_KINDS:
        break;
    }
    return false;
}

static bool
take_event (const struct value *v, struct process_event *out)
{
    *out = (struct process_event){ 0 };
    if (! v || v->kind != VALUE_VARIANT || ! v->variant.payload)
        return false;
    for (unsigned i = 0; i < PROCESS_EVENT_KINDS; i++)
        if (strcmp (event_names[i], v->variant.name) == 0) {
            out->kind = (enum process_event_kind)i;
            return take_payload (v->variant.payload, out);
        }
    return false;
}

/* --- to values --- */

static struct value
text (struct arena *a, const char *s)
{
    return hook_text_value (a, s, strlen (s));
}

static struct value
optional (struct arena *a, const char *s)
{
    return s ? value_some (a, text (a, s)) : value_none ();
}

#define RECORD(arena, ...)                                                                         \
    value_record ((arena), (const struct value_field[]){ __VA_ARGS__ },                            \
                  sizeof ((const struct value_field[]){ __VA_ARGS__ }) /                           \
                      sizeof (struct value_field))

static struct value
bridge_value (struct arena *a, const struct process_bridge *b)
{
    if (! b)
        return value_none ();
    size_t count = 0;
    while (b->tool_names[count])
        count++;
    struct value *names = arena_new_array (a, struct value, count + 1);
    for (size_t i = 0; i < count; i++)
        names[i] = text (a, b->tool_names[i]);
    return value_some (a, RECORD (a, { "server-name", text (a, b->server_name) },
                                  { "url", text (a, b->url) },
                                  { "bearer-token", text (a, b->bearer_token) },
                                  { "tool-names", value_list (a, names, count) }));
}

static struct value
request_value (struct arena *a, const struct process_request *r)
{
    struct value session = RECORD (a, { "id", text (a, r->session_id) },
                                   { "mode", value_enum (r->is_resume ? "resume" : "new") });
    return RECORD (a, { "model", optional (a, r->model) },
                   { "system-prompt", text (a, r->system_prompt) },
                   { "config", optional (a, r->config) }, { "bridge", bridge_value (a, r->bridge) },
                   { "session", session }, { "harness-version", optional (a, r->harness_version) },
                   { "task", hook_text_value (a, r->task, r->task_len) });
}

static struct value
exit_value (struct arena *a, const struct process_exit *e)
{
    return RECORD (
        a, { "code", e->has_code ? value_some (a, value_s32 (e->code)) : value_none () },
        { "signal", e->has_signal ? value_some (a, value_s32 (e->signal_number)) : value_none () },
        { "stderr-tail", hook_text_value (a, e->stderr_tail, e->stderr_len) },
        { "interrupted", value_bool (e->was_interrupted) },
        { "saw-terminal", value_bool (e->saw_terminal) });
}

/* --- calls --- */

static bool
call (struct guest *g, const char *function, const struct value *argument, struct arena *arena,
      struct value *result, struct mur_error **err)
{
    return guest_call (g, host_process_interface, function, argument, argument ? 1 : 0, arena,
                       result, NULL, err) == GUEST_OK ||
           mur_context (err, "%s", function);
}

static bool
refuse_shape (const char *function, struct mur_error **err)
{
    return mur_fail (err, E_RUN_034, "%s#%s answered in another shape", host_process_interface,
                     function);
}

bool
host_process_describe (struct guest *g, struct arena *arena, struct process_description *out,
                       struct mur_error **err)
{
    struct value result;
    *out = (struct process_description){ 0 };
    return call (g, "describe", NULL, arena, &result, err) &&
           (take_description (&result, arena, out) || refuse_shape ("describe", err));
}

bool
host_process_launch (struct guest *g, const struct process_request *request, struct arena *arena,
                     struct process_plan *out, struct mur_error **err)
{
    struct value result, argument = request_value (arena, request);
    *out = (struct process_plan){ 0 };
    if (! call (g, "launch", &argument, arena, &result, err))
        return false;
    if (result.kind == VALUE_RESULT && ! result.result.is_ok) {
        const char *said = value_text (result.result.payload, NULL);
        return mur_fail (err, E_RUN_034, "launch: %s", said ? said : "it gave no reason");
    }
    return (result.kind == VALUE_RESULT && take_plan (result.result.payload, arena, out)) ||
           refuse_shape ("launch", err);
}

bool
host_process_parse (struct guest *g, const char *const *lines, const size_t *lens, size_t count,
                    struct arena *arena, struct process_events *out, struct mur_error **err)
{
    struct value *items = arena_new_array (arena, struct value, count + 1), result;
    for (size_t i = 0; i < count; i++)
        items[i] = hook_text_value (arena, lines[i], lens[i]);
    struct value argument = value_list (arena, items, count);
    *out = (struct process_events){ 0 };
    if (! call (g, "parse", &argument, arena, &result, err))
        return false;
    if (result.kind != VALUE_LIST)
        return refuse_shape ("parse", err);
    out->items = arena_new_array (arena, struct process_event, result.list.len + 1);
    out->len = result.list.len;
    for (size_t i = 0; i < result.list.len; i++)
        if (! take_event (&result.list.items[i], &out->items[i]))
            return refuse_shape ("parse", err);
    return true;
}

bool
host_process_classify (struct guest *g, const struct process_exit *how, struct arena *arena,
                       struct process_event *out, struct mur_error **err)
{
    struct value result, argument = exit_value (arena, how);
    return call (g, "classify-exit", &argument, arena, &result, err) &&
           (take_event (&result, out) || refuse_shape ("classify-exit", err));
}
