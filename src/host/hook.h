/* SPDX-License-Identifier: Apache-2.0
 *
 * Calling a hook: murmur:hook/lifecycle@0.9.0, its events and what it may answer
 * (spec/artifacts.md 15.10).
 *
 * Also the shape of a message, shared with the interfaces a hook imports.
 */
#pragma once

#include "engine/engine.h"
#include "engine/guest.h"

enum hook_event_kind {
    HOOK_ON_STAGE,
    HOOK_ON_SESSION_START,
    HOOK_ON_TASK_START,
    HOOK_ON_INFERENCE,
    HOOK_ON_TOOL_CALL,
    HOOK_ON_SHELL,
    HOOK_ON_COMPACTION,
    HOOK_ON_TASK_END,
    HOOK_ON_SESSION_END,
    HOOK_EVENT_KINDS,
};

enum hook_arm {
    HOOK_NONE,
    HOOK_REPLACE_CONTEXT,
    HOOK_WRITE_MANIFESTS,
    HOOK_ARTIFACT,
    HOOK_REOPEN_TASK,
    HOOK_SEED_CONTEXT,
    HOOK_DENY,
};

/* Texts are NUL-terminated UTF-8; NULL is none. */
struct hook_message {
    const char *role;
    const char *content;
    size_t content_len;
    const char *id;
    const char *source_id;
    const char *inserted_by; /* "replace-context", "seed-context" */
};

struct hook_messages {
    struct hook_message *items;
    size_t len;
};

struct hook_tool_manifest {
    const char *binary_name;
    const char *content;
    size_t content_len;
};

struct hook_output {
    enum hook_arm arm;
    const char *text; /* artifact, reopen-task, deny */
    size_t text_len;
    struct hook_messages messages; /* replace-context, seed-context */
    struct hook_tool_manifest *manifests;
    size_t manifest_count;
};

struct hook_session_context {
    const char *capsule_name, *capsule_version, *session_id, *model;
    char *const *capabilities; /* NULL-terminated; may be NULL */
};

struct hook_task_start {
    const char *task_id, *context_id, *source;
    uint64_t input_bytes, budget_tokens, context_window, prior_tokens;
};

struct hook_inference {
    uint32_t turn;
    uint64_t input_tokens, output_tokens;
    const char *decision, *tool_name, *prompt, *output, *tools;
};

struct hook_tool_call {
    uint32_t turn;
    const char *tool_name, *input;
    bool has_outcome;
    uint64_t output_bytes, duration_ms;
    const char *status;
};

struct hook_shell {
    uint32_t turn;
    const char *binary, *command;
    char *const *argv; /* NULL-terminated; may be NULL */
    const char *script, *recipe;
    bool has_outcome;
    int32_t exit_code;
    const char *out, *err;
    size_t out_len, err_len;
    uint64_t stdout_bytes, stderr_bytes, duration_ms;
};

struct hook_compaction {
    struct hook_messages messages;
    uint64_t session_tokens;
    double threshold;
    const char *model, *system_prompt;
};

struct hook_task_end {
    const char *task_id, *exit_status;
};

struct hook_session_end {
    uint32_t turns, tool_calls, shell_calls;
    uint64_t input_tokens, output_tokens, duration_ms;
    const char *exit_status;
};

struct hook_event {
    enum hook_event_kind kind;
    union {
        char *const *shell_allow; /* on-stage */
        struct hook_session_context session_start;
        struct hook_task_start task_start;
        struct hook_inference inference;
        struct hook_tool_call tool_call;
        struct hook_shell shell;
        struct hook_compaction compaction;
        struct hook_task_end task_end;
        struct hook_session_end session_end;
    };
};

extern const char host_hook_interface[]; /* "murmur:hook/lifecycle@0.9.0" */

/* "on-tool-call": the function's name. Static. */
const char *hook_event_name (enum hook_event_kind kind);
/* "deny". Static. */
const char *hook_arm_name (enum hook_arm arm);

/* The event as a value; every text is copied into <arena>. Text that is no UTF-8 is repaired. */
struct value hook_event_to_value (struct arena *arena, const struct hook_event *event);

/* Calls the event's function. GUEST_OK: the guest answered, with *out, or with *failure, the text
 * of its error arm. Everything lives in <arena>. */
enum guest_ending
host_hook_call (struct guest *g, enum hook_event_kind kind, const struct value *event,
                struct arena *arena, struct hook_output *out, const char **failure,
                struct cancel *cancel, struct mur_error **err);

/* A string value from bytes that may be no UTF-8: what is malformed becomes U+FFFD. */
struct value hook_text_value (struct arena *arena, const char *text, size_t len);
struct value hook_messages_to_value (struct arena *arena, const struct hook_messages *messages);
/* False when the value has another shape. */
bool
hook_messages_from_value (const struct value *v, struct arena *arena, struct hook_messages *out);
