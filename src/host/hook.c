/* SPDX-License-Identifier: Apache-2.0 */
#include "host/hook.h"
#include "engine/guest.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/json_write.h"

#include <string.h>

const char host_hook_interface[] = "murmur:hook/lifecycle@0.9.0";

static const char *const event_names[HOOK_EVENT_KINDS] = {
    [HOOK_ON_STAGE] = "on-stage",
    [HOOK_ON_SESSION_START] = "on-session-start",
    [HOOK_ON_TASK_START] = "on-task-start",
    [HOOK_ON_INFERENCE] = "on-inference",
    [HOOK_ON_TOOL_CALL] = "on-tool-call",
    [HOOK_ON_SHELL] = "on-shell",
    [HOOK_ON_COMPACTION] = "on-compaction",
    [HOOK_ON_TASK_END] = "on-task-end",
    [HOOK_ON_SESSION_END] = "on-session-end",
};

static const char *const arm_names[] = {
    [HOOK_NONE] = "none",
    [HOOK_REPLACE_CONTEXT] = "replace-context",
    [HOOK_WRITE_MANIFESTS] = "write-manifests",
    [HOOK_ARTIFACT] = "artifact",
    [HOOK_REOPEN_TASK] = "reopen-task",
    [HOOK_SEED_CONTEXT] = "seed-context",
    [HOOK_DENY] = "deny",
};

const char *
hook_event_name (enum hook_event_kind kind)
{
    return event_names[kind];
}

const char *
hook_arm_name (enum hook_arm arm)
{
    return arm_names[arm];
}

/* --- to values --- */

struct value
hook_text_value (struct arena *a, const char *text, size_t len)
{
    if (utf8_is_valid (text, len))
        return value_string_n (a, text, len);
    _cleanup_json_ json_t *repaired = json_string_lossy (text, len);
    return value_string_n (a, json_string_value (repaired), json_string_length (repaired));
}

static struct value
text (struct arena *a, const char *s)
{
    return hook_text_value (a, s ? s : "", s ? strlen (s) : 0);
}

static struct value
optional (struct arena *a, const char *s)
{
    return s ? value_some (a, text (a, s)) : value_none ();
}

static struct value
texts (struct arena *a, char *const *list)
{
    size_t len = 0;
    while (list && list[len])
        len++;
    struct value *items = arena_new_array (a, struct value, len + 1);
    for (size_t i = 0; i < len; i++)
        items[i] = text (a, list[i]);
    return value_list (a, items, len);
}

#define RECORD(arena, ...)                                                                         \
    value_record ((arena), (const struct value_field[]){ __VA_ARGS__ },                            \
                  sizeof ((const struct value_field[]){ __VA_ARGS__ }) /                           \
                      sizeof (struct value_field))

static struct value
session_start_value (struct arena *a, const struct hook_session_context *e)
{
    return RECORD (a, { "capsule-name", text (a, e->capsule_name) },
                   { "capsule-version", text (a, e->capsule_version) },
                   { "session-id", text (a, e->session_id) }, { "model", text (a, e->model) },
                   { "capabilities", texts (a, e->capabilities) });
}

static struct value
task_start_value (struct arena *a, const struct hook_task_start *e)
{
    return RECORD (a, { "task-id", text (a, e->task_id) },
                   { "context-id", text (a, e->context_id) }, { "source", text (a, e->source) },
                   { "input-bytes", value_u64 (e->input_bytes) },
                   { "budget-tokens", value_u64 (e->budget_tokens) },
                   { "context-window", value_u64 (e->context_window) },
                   { "prior-tokens", value_u64 (e->prior_tokens) });
}

static struct value
inference_value (struct arena *a, const struct hook_inference *e)
{
    return RECORD (
        a, { "turn", value_u32 (e->turn) }, { "input-tokens", value_u64 (e->input_tokens) },
        { "output-tokens", value_u64 (e->output_tokens) }, { "decision", text (a, e->decision) },
        { "tool-name", optional (a, e->tool_name) }, { "prompt", optional (a, e->prompt) },
        { "output", optional (a, e->output) }, { "tools", optional (a, e->tools) });
}

static struct value
tool_call_value (struct arena *a, const struct hook_tool_call *e)
{
    struct value outcome = value_none ();
    if (e->has_outcome)
        outcome = value_some (a, RECORD (a, { "output-bytes", value_u64 (e->output_bytes) },
                                         { "duration-ms", value_u64 (e->duration_ms) },
                                         { "status", text (a, e->status) }));
    return RECORD (a, { "turn", value_u32 (e->turn) }, { "tool-name", text (a, e->tool_name) },
                   { "input-bytes", value_u64 (strlen (e->input)) },
                   { "input", text (a, e->input) }, { "outcome", outcome });
}

static struct value
shell_value (struct arena *a, const struct hook_shell *e)
{
    struct value outcome = value_none ();
    if (e->has_outcome)
        outcome = value_some (
            a, RECORD (a, { "exit-code", value_s32 (e->exit_code) },
                       { "stdout", hook_text_value (a, e->out ? e->out : "", e->out_len) },
                       { "stderr", hook_text_value (a, e->err ? e->err : "", e->err_len) },
                       { "stdout-bytes", value_u64 (e->stdout_bytes) },
                       { "stderr-bytes", value_u64 (e->stderr_bytes) },
                       { "duration-ms", value_u64 (e->duration_ms) }));
    return RECORD (a, { "turn", value_u32 (e->turn) }, { "binary", text (a, e->binary) },
                   { "command", text (a, e->command) }, { "argv", texts (a, e->argv) },
                   { "script", optional (a, e->script) }, { "recipe", optional (a, e->recipe) },
                   { "outcome", outcome });
}

static struct value
message_value (struct arena *a, const struct hook_message *m)
{
    struct value inserted_by = value_none ();
    if (m->inserted_by)
        inserted_by = value_some (a, value_enum (strcmp (m->inserted_by, "seed-context") == 0
                                                     ? "seed-context"
                                                     : "replace-context"));
    return RECORD (a, { "role", text (a, m->role) },
                   { "content", hook_text_value (a, m->content, m->content_len) },
                   { "id", optional (a, m->id) }, { "source-id", optional (a, m->source_id) },
                   { "inserted-by", inserted_by });
}

struct value
hook_messages_to_value (struct arena *a, const struct hook_messages *messages)
{
    struct value *items = arena_new_array (a, struct value, messages->len + 1);
    for (size_t i = 0; i < messages->len; i++)
        items[i] = message_value (a, &messages->items[i]);
    return value_list (a, items, messages->len);
}

static struct value
compaction_value (struct arena *a, const struct hook_compaction *e)
{
    return RECORD (a, { "messages", hook_messages_to_value (a, &e->messages) },
                   { "session-tokens", value_u64 (e->session_tokens) },
                   { "threshold", value_f64 (e->threshold) }, { "model", optional (a, e->model) },
                   { "system-prompt", optional (a, e->system_prompt) });
}

static struct value
session_end_value (struct arena *a, const struct hook_session_end *e)
{
    return RECORD (a, { "total-turns", value_u32 (e->turns) },
                   { "total-input-tokens", value_u64 (e->input_tokens) },
                   { "total-output-tokens", value_u64 (e->output_tokens) },
                   { "total-tool-calls", value_u32 (e->tool_calls) },
                   { "total-shell-calls", value_u32 (e->shell_calls) },
                   { "duration-ms", value_u64 (e->duration_ms) },
                   { "exit-status", text (a, e->exit_status) });
}

struct value
hook_event_to_value (struct arena *a, const struct hook_event *e)
{
    switch (e->kind) {
    case HOOK_ON_STAGE:
        return RECORD (a, { "shell-allow", texts (a, e->shell_allow) });
    case HOOK_ON_SESSION_START:
        return session_start_value (a, &e->session_start);
    case HOOK_ON_TASK_START:
        return task_start_value (a, &e->task_start);
    case HOOK_ON_INFERENCE:
        return inference_value (a, &e->inference);
    case HOOK_ON_TOOL_CALL:
        return tool_call_value (a, &e->tool_call);
    case HOOK_ON_SHELL:
        return shell_value (a, &e->shell);
    case HOOK_ON_COMPACTION:
        return compaction_value (a, &e->compaction);
    case HOOK_ON_TASK_END:
        return RECORD (a, { "task-id", text (a, e->task_end.task_id) },
                       { "exit-status", text (a, e->task_end.exit_status) });
    case HOOK_ON_SESSION_END:
        return session_end_value (a, &e->session_end);
    case HOOK_EVENT_KINDS:
        break;
    }
    return value_none ();
}

/* --- from values --- */

/* The types were checked when the call was made: here only the shapes relied on are asserted. */
static bool
message_from_value (const struct value *v, struct hook_message *m)
{
    const struct value *inserted_by = value_field (v, "inserted-by");
    *m = (struct hook_message){ 0 };
    m->role = value_text (value_field (v, "role"), NULL);
    m->content = value_text (value_field (v, "content"), &m->content_len);
    m->id = value_text (value_field (v, "id"), NULL);
    m->source_id = value_text (value_field (v, "source-id"), NULL);
    if (inserted_by && inserted_by->kind == VALUE_OPTION && inserted_by->option)
        m->inserted_by = inserted_by->option->variant.name;
    return m->role && m->content;
}

bool
hook_messages_from_value (const struct value *v, struct arena *arena, struct hook_messages *out)
{
    *out = (struct hook_messages){ 0 };
    if (! v || v->kind != VALUE_LIST)
        return false;
    out->items = arena_new_array (arena, struct hook_message, v->list.len + 1);
    out->len = v->list.len;
    for (size_t i = 0; i < v->list.len; i++)
        if (! message_from_value (&v->list.items[i], &out->items[i]))
            return false;
    return true;
}

static bool
manifests_from_value (const struct value *v, struct arena *arena, struct hook_output *out)
{
    if (! v || v->kind != VALUE_LIST)
        return false;
    out->manifests = arena_new_array (arena, struct hook_tool_manifest, v->list.len + 1);
    out->manifest_count = v->list.len;
    for (size_t i = 0; i < v->list.len; i++) {
        struct hook_tool_manifest *m = &out->manifests[i];
        m->binary_name = value_text (value_field (&v->list.items[i], "binary-name"), NULL);
        m->content = value_text (value_field (&v->list.items[i], "content"), &m->content_len);
        if (! m->binary_name || ! m->content)
            return false;
    }
    return true;
}

static bool
output_from_value (const struct value *v, struct arena *arena, struct hook_output *out)
{
    *out = (struct hook_output){ 0 };
    if (! v || v->kind != VALUE_VARIANT)
        return false;
    size_t arm = 0;
    while (arm < ARRAY_LEN (arm_names) && strcmp (arm_names[arm], v->variant.name) != 0)
        arm++;
    if (arm == ARRAY_LEN (arm_names))
        return false;
    out->arm = (enum hook_arm)arm;
    switch (out->arm) {
    case HOOK_NONE:
        return true;
    case HOOK_REPLACE_CONTEXT:
    case HOOK_SEED_CONTEXT:
        return hook_messages_from_value (v->variant.payload, arena, &out->messages);
    case HOOK_WRITE_MANIFESTS:
        return manifests_from_value (v->variant.payload, arena, out);
    case HOOK_ARTIFACT:
    case HOOK_REOPEN_TASK:
    case HOOK_DENY:
        break;
    }
    out->text = value_text (v->variant.payload, &out->text_len);
    return out->text != NULL;
}

enum guest_ending
host_hook_call (struct guest *g, enum hook_event_kind kind, const struct value *event,
                struct arena *arena, struct hook_output *out, const char **failure,
                struct cancel *cancel, struct mur_error **err)
{
    struct value result;
    *out = (struct hook_output){ 0 };
    *failure = NULL;
    enum guest_ending ending = guest_call (g, host_hook_interface, event_names[kind], event, 1,
                                           arena, &result, cancel, err);
    if (ending != GUEST_OK)
        return ending;
    if (result.kind == VALUE_RESULT && ! result.result.is_ok) {
        *failure = value_text (result.result.payload, NULL);
        if (! *failure)
            *failure = "it gave no reason";
        return GUEST_OK;
    }
    if (result.kind != VALUE_RESULT || ! output_from_value (result.result.payload, arena, out)) {
        mur_fail (err, E_RUN_001, "%s#%s returned another shape than a hook-output",
                  host_hook_interface, event_names[kind]);
        return GUEST_TRAPPED;
    }
    return GUEST_OK;
}
