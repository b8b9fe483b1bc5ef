/* SPDX-License-Identifier: Apache-2.0
 *
 * Running one tool call, by name, first match wins (spec/session.md 8.1), and what it yields (2.5).
 *
 * Callers: turn.c, script.c. Always true: everything a tool returned is fenced here and nowhere
 * else; the label is the one the text was fenced under.
 */
#pragma once

#include "host/tool.h"
#include "session/state/session.h"

struct running_task;

/* What a shell command left to record. */
struct shell_facts {
    char *binary;        /* canonical path, or the bare name */
    char *command;       /* the arguments only */
    struct strv argv;    /* as it was started */
    const char *script;  /* an interpreter's, borrowed from command; NULL else */
    struct buf out, err; /* what was kept of its streams, when there are hooks */
    bool is_detached;
    char work_id[37];  /* detached */
    uint64_t grace_ms; /* detached */
    int exit_code;     /* finished, like the rest */
    uint64_t stdout_bytes, stderr_bytes, duration_ms;
    const char *resource_limit; /* static, or NULL */
};

struct call_outcome {
    enum tool_status status;
    struct buf text; /* what the model gets: fenced, then notes */
    bool is_skill;
    enum lock_origin skill_origin;
    char *fence_source;  /* NULL: not fenced */
    char *runtime_error; /* the runtime could not run the call: goes to the trace */
    char *state_effect;  /* "read", "mutate" as the tool said it */
    char *resource_id;
    bool is_truncated;
    bool is_dispatched; /* something ran: the deadline notice may be used up on it */
    bool has_shell;     /* shell is filled: a command finished or went to the background */
    struct shell_facts shell;
    bool is_canceled;               /* the task was cancelled while it ran */
    bool is_refused;                /* a gate said no: nothing ran and no call is recorded */
    const struct cgroup_nest *nest; /* set by the caller: where its processes run; NULL: anywhere */
    bool is_plan_step; /* set by the caller: nothing is fenced, a command is waited for, a result
                          may lie in a file */
    /* Set by a caller whose wait may end before the task does; NULL: the task's own cancel. */
    struct cancel *abandon; /* a command goes to the background */
    struct cancel *stop;    /* a tool is stopped */
};

void call_outcome_clear (struct call_outcome *o);
#define _cleanup_outcome_ _cleanup_ (call_outcome_clear)

/* Runs the call and fences what came back. <input> is the call's input object, <input_text> its
 * compact JSON. */
void dispatch_call (struct session *s, struct running_task *task, const char *name,
                    const json_t *input, const char *input_text, struct call_outcome *out);

/* One WASM tool run; the result lives in <arena>. For a guest that could not be run *err names the
 * tool. */
enum guest_ending
dispatch_wasm (struct session *s, struct staged_artifact *tool, const char *data, size_t len,
               const char *log_path, struct arena *arena, struct tool_result *result,
               struct cancel *cancel, struct running_task *task, struct mur_error **err);

/* For provided tools: the answer of a call, fenced under "tool:<name>". */
void outcome_set_result (struct call_outcome *o, const char *name, enum tool_status status,
                         const char *text, size_t len);
/* The runtime's own unfenced words: the call reached no tool. */
void outcome_set_error (struct call_outcome *o, const char *fmt, ...) _printf_ (2, 3);
/* A string of a call's input that must be there and not blank; NULL after an error in <out>.
 * Borrowed from <input>. */
const char *
input_text (const char *tool, const json_t *input, const char *key, struct call_outcome *out);
