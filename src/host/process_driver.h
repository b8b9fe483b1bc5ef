/* SPDX-License-Identifier: Apache-2.0
 *
 * Calling a process driver: murmur:driver/process@0.3.0 (spec/artifacts.md 15.14).
 *
 * Each function fills plain C from the guest's answer; everything lives in the caller's arena.
 * Always true: a guest that answers in another shape, or cannot answer, is an error, never a guess.
 */
#pragma once

#include "engine/engine.h"
#include "engine/guest.h"

extern const char host_process_interface[]; /* "murmur:driver/process@0.3.0" */

enum interrupt_method {
    INTERRUPT_STDIN_MESSAGE,
    INTERRUPT_SIGNAL_INT,
    INTERRUPT_UNSUPPORTED,
};
/* "stdin-message". Static. */
const char *interrupt_method_name (enum interrupt_method method);

/* A list of texts; items ends with NULL. */
struct text_list {
    const char **items;
    size_t len;
};

struct process_description {
    const char *harness;
    const char *binary;
    struct text_list version_args;
    struct text_list tested_versions;
    enum interrupt_method interrupt;
    struct text_list required_env;
    bool streams_text;
    bool reports_usage;
};

struct process_bridge {
    const char *server_name, *url, *bearer_token;
    char *const *tool_names; /* NULL-terminated */
};

struct process_request {
    const char *model; /* NULL: none */
    const char *system_prompt;
    const char *config;                  /* NULL: none */
    const struct process_bridge *bridge; /* NULL: none */
    const char *session_id;
    bool is_resume;
    const char *harness_version; /* NULL: unknown */
    const char *task;
    size_t task_len;
};

struct process_file {
    const char *name;
    const char *contents;
    size_t contents_len;
};

struct process_variable {
    const char *name, *value;
};

struct process_bytes {
    bool is_some;
    const char *data;
    size_t len;
};

struct process_plan {
    struct text_list args;
    struct process_variable *env;
    size_t env_len;
    struct process_file *files;
    size_t file_count;
    struct process_bytes stdin_bytes;
    bool keeps_stdin_open;
    struct process_bytes interrupt_bytes;
};

/* In the order of the WIT text. */
enum process_event_kind {
    PROCESS_SESSION_STARTED,
    PROCESS_TEXT_DELTA,
    PROCESS_TEXT,
    PROCESS_THINKING_DELTA,
    PROCESS_THINKING,
    PROCESS_TOOL_CALL,
    PROCESS_TOOL_RESULT,
    PROCESS_RETRY,
    PROCESS_USAGE,
    PROCESS_TURN_END,
    PROCESS_TURN_FAILED,
    PROCESS_NOTE,
    PROCESS_TOOL_CALL_STARTED,
    PROCESS_TOOL_CALL_PROGRESS,
    PROCESS_EVENT_KINDS,
};

enum failure_kind {
    FAILURE_AUTH,
    FAILURE_QUOTA,
    FAILURE_MAX_TURNS,
    FAILURE_CANCELED,
    FAILURE_HARNESS_ERROR,
    FAILURE_OTHER,
};
/* "harness-error". Static. */
const char *failure_kind_name (enum failure_kind kind);

/* Members of a harness's usage, cumulative for its run. */
enum process_usage_member {
    USAGE_INPUT,
    USAGE_OUTPUT,
    USAGE_CACHE_READ,
    USAGE_CACHE_CREATION,
    USAGE_THINKING,
    USAGE_MEMBERS,
};

struct process_usage {
    bool is_set[USAGE_MEMBERS];
    uint64_t value[USAGE_MEMBERS];
};

struct process_event {
    enum process_event_kind kind;
    const char *text; /* texts, turn-end, note; the message of turn-failed; the reason of retry */
    size_t text_len;
    const char *id;            /* session-started, tool-* */
    const char *name;          /* tool-call, tool-call-started; the auth of session-started */
    const char *model;         /* session-started; NULL: none */
    const char *input;         /* tool-call */
    bool is_error;             /* tool-result, whose output is text */
    uint64_t input_bytes;      /* tool-call-progress */
    uint32_t attempt;          /* retry */
    enum failure_kind failure; /* turn-failed */
    struct process_usage usage;
};

struct process_events {
    struct process_event *items;
    size_t len;
};

struct process_exit {
    bool has_code;
    int32_t code;
    bool has_signal;
    int32_t signal_number;
    const char *stderr_tail;
    size_t stderr_len;
    bool was_interrupted;
    bool saw_terminal;
};

bool host_process_describe (struct guest *g, struct arena *arena, struct process_description *out,
                            struct mur_error **err);
/* False also when the driver answers an error: *err then holds its words. */
bool host_process_launch (struct guest *g, const struct process_request *request,
                          struct arena *arena, struct process_plan *out, struct mur_error **err);
/* <lines> without line ends; bytes that are no UTF-8 are repaired. */
bool
host_process_parse (struct guest *g, const char *const *lines, const size_t *lens, size_t count,
                    struct arena *arena, struct process_events *out, struct mur_error **err);
bool host_process_classify (struct guest *g, const struct process_exit *how, struct arena *arena,
                            struct process_event *out, struct mur_error **err);
