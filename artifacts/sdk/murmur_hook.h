/* SPDX-License-Identifier: Apache-2.0
 *
 * What a hook is written with: the events of a session, what may be answered, and what a hook may
 * ask for.
 *
 * A whole hook, which keeps one program away from production:
 *
 *     #include "murmur_hook.h"
 *
 *     void
 *     mur_on_shell (const struct mur_shell_event *event, struct mur_hook_output *out)
 *     {
 *         for (size_t i = 0; event->argv[i] != NULL; i++)
 *             if (event->outcome == NULL && strcmp (event->argv[i], "--production") == 0)
 *                 mur_hook_deny (out, "production is not for agents");
 *     }
 *
 * Write the functions of the events you want; the others answer nothing. One instance serves the
 * whole session, so static variables keep what was seen. Strings of an event are valid until the
 * function returns and never NULL unless it says so; what is handed to a function below is copied.
 */
#ifndef MURMUR_HOOK_H
#define MURMUR_HOOK_H

#include "murmur_sdk.h"

/* --- Messages of a conversation --- */

enum mur_insertion {
    MUR_INSERTED_NOT,
    MUR_INSERTED_BY_REPLACE,
    MUR_INSERTED_BY_SEED,
};

/* `content` is JSON: the blocks of the message; of a tool's result an envelope with
 * `__murmur_tool_msg__`, `tool_call_id`, `is_error` and `body`. Hand it back as it is. In a message
 * of your own it may be plain text. */
struct mur_message {
    const char *role;
    const char *content;
    const char *id;        /* NULL: none; a message handed back with its id stays itself */
    const char *source_id; /* NULL: none */
    enum mur_insertion inserted_by;
};

struct mur_messages {
    const struct mur_message *items;
    size_t count;
};

/* --- Events --- */

struct mur_stage_event {
    const char *const *shell_allow; /* ends with NULL */
};

struct mur_session_event {
    const char *capsule_name;
    const char *capsule_version;
    const char *session_id;
    const char *model;
    const char *const *capabilities; /* ends with NULL */
};

/* A zero means "not computed". */
struct mur_task_start_event {
    const char *task_id;
    const char *context_id;
    const char *source;
    uint64_t input_bytes;
    uint64_t budget_tokens;
    uint64_t context_window;
    uint64_t prior_tokens;
};

struct mur_inference_event {
    uint32_t turn;
    uint64_t input_tokens;
    uint64_t output_tokens;
    const char *decision;
    const char *tool_name; /* each of these: NULL when there is none */
    const char *prompt;
    const char *output;
    const char *tools;
};

struct mur_tool_outcome {
    uint64_t output_bytes;
    uint64_t duration_ms;
    const char *status;
};

struct mur_tool_event {
    uint32_t turn;
    const char *tool_name;
    uint64_t input_bytes;
    const char *input;                      /* JSON, never cut */
    const struct mur_tool_outcome *outcome; /* NULL: the call has not run, and may be denied */
};

struct mur_shell_outcome {
    int32_t exit_code;
    const char *out;
    const char *err;
    uint64_t out_bytes;
    uint64_t err_bytes;
    uint64_t duration_ms;
};

struct mur_shell_event {
    uint32_t turn;
    const char *binary;
    const char *command;                     /* for people: cut. Decide by the members below */
    const char *const *argv;                 /* ends with NULL */
    const char *script;                      /* NULL: none */
    const char *recipe;                      /* NULL: none known, which is no sign of safety */
    const struct mur_shell_outcome *outcome; /* NULL: it has not run, and may be denied */
};

struct mur_compaction_event {
    struct mur_messages messages;
    uint64_t session_tokens;
    double threshold;
    const char *model;         /* inference.compaction's, or NULL */
    const char *system_prompt; /* the same */
};

struct mur_task_end_event {
    const char *task_id;
    const char *exit_status;
};

struct mur_session_end_event {
    uint32_t total_turns;
    uint64_t total_input_tokens;
    uint64_t total_output_tokens;
    uint32_t total_tool_calls;
    uint32_t total_shell_calls;
    uint64_t duration_ms;
    const char *exit_status;
};

struct mur_hook_output; /* the SDK's own; filled with the functions below */

void mur_on_stage (const struct mur_stage_event *event, struct mur_hook_output *out);
void mur_on_session_start (const struct mur_session_event *event, struct mur_hook_output *out);
void mur_on_task_start (const struct mur_task_start_event *event, struct mur_hook_output *out);
void mur_on_inference (const struct mur_inference_event *event, struct mur_hook_output *out);
void mur_on_tool_call (const struct mur_tool_event *event, struct mur_hook_output *out);
void mur_on_shell (const struct mur_shell_event *event, struct mur_hook_output *out);
void mur_on_compaction (const struct mur_compaction_event *event, struct mur_hook_output *out);
void mur_on_task_end (const struct mur_task_end_event *event, struct mur_hook_output *out);
void mur_on_session_end (const struct mur_session_end_event *event, struct mur_hook_output *out);

/* --- Answers: the last call wins, but for lists, which grow --- */

/* Of a call that has not run; the reason is told to the model. */
void mur_hook_deny (struct mur_hook_output *out, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));
/* On mur_on_task_end: the task goes on with this text. */
void mur_hook_reopen (struct mur_hook_output *out, const char *text);
/* On mur_on_inference: a frame of the task's stream. */
void mur_hook_artifact (struct mur_hook_output *out, const char *text);
/* On mur_on_compaction: the next message that stands in place of the conversation. */
void mur_hook_replace (struct mur_hook_output *out, const struct mur_message *message);
/* On mur_on_task_start: the next message that stands before the task. */
void mur_hook_seed (struct mur_hook_output *out, const struct mur_message *message);
/* On mur_on_stage: what the model is told of a program of shell.allow. */
void mur_hook_manifest (struct mur_hook_output *out, const char *binary, const char *content);
/* The hook failed. The session goes on, but a compaction fails and a call is denied. */
void mur_hook_error (struct mur_hook_output *out, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));

/* --- What a hook may ask for --- */

struct mur_inference_request {
    struct mur_messages messages;
    const char *system_prompt; /* NULL: none */
    const char *model;         /* NULL: the session's first choice */
};

struct mur_inference_answer {
    char *text;
    char *model_used;
    uint64_t input_tokens;
    uint64_t output_tokens;
};

/* One completion through the session's own driver, without tools; it is paid for like a turn.
 * Returns false with *error set. */
bool mur_infer (const struct mur_inference_request *request, struct mur_inference_answer *answer,
                char **error);
/* The host's own count, in cl100k_base tokens. */
uint64_t mur_count_tokens (const char *text);

/* The task's whole text, and what it has answered so far. NULL with *error set: "not-granted"
 * (capabilities.task_io.read), "no-task", "no-output". */
char *mur_task_input (bool is_original, char **error);
char *mur_task_output (char **error);

struct mur_conversation_page {
    struct mur_message *items;
    size_t count;
    char *next_cursor; /* NULL: the end of the record */
    uint32_t total;
};

/* The conversation's record, newest first (capabilities.conversation.read). `cursor` NULL: from the
 * newest. Returns false with *error set. */
bool mur_conversation_read (const char *cursor, uint32_t limit, struct mur_conversation_page *page,
                            char **error);

#endif
