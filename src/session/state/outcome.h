/* SPDX-License-Identifier: Apache-2.0
 *
 * What a call yields (docs/spec/session.md 2.5): the text the model gets, and what is recorded of
 * it.
 *
 * Always true: everything a tool returned is fenced here and nowhere else; the label is the one
 * the text was fenced under. Only a step of a plan is not: its plan fences the whole report.
 */
#pragma once

#include "artifact/store/lock.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "host/tool.h"
#include "session/conversation/fence.h"

/* What a shell command left to record. */
struct shell_facts {
    char *binary;        /* canonical path, or the bare name */
    char *command;       /* the arguments only */
    struct strv argv;    /* as it was started */
    const char *script;  /* an interpreter's, borrowed from command; NULL else */
    char *recipe;        /* what the recipe it names ran, for hooks; NULL: none is known */
    struct buf out, err; /* what was kept of its streams, when there are hooks */
    bool is_detached;
    char work_id[37];  /* detached */
    uint64_t grace_ms; /* detached */
    int exit_code;     /* finished, like the rest */
    uint64_t stdout_bytes, stderr_bytes, duration_ms;
    const char *resource_limit; /* static, or NULL */
    struct strv refusals;       /* what the walls refused it, a line each */
};

struct call_outcome {
    enum tool_status status;
    struct buf text;              /* what the model gets: fenced, then notes */
    bool is_unfenced;             /* of a plan's step */
    struct fence_word fence_word; /* what ends the fence */
    bool is_skill;
    enum lock_origin skill_origin;
    char *fence_source;  /* NULL: not fenced */
    char *runtime_error; /* the runtime could not run the call: goes to the trace */
    char *state_effect;  /* "read", "mutate" as the tool said it */
    char *resource_id;
    const char *server;      /* whose tool it was, borrowed from the session; NULL: no server's */
    uint64_t progress_count; /* of a server's call */
    unsigned lacking;        /* of mcp_input: what its client did not declare, and it needs */
    json_t *mcp_result; /* of a served call of a server's tool: as it came; NULL: the text is all */
    json_t
        *mcp_error; /* of such a call: {code, message} its server answered in place of a result */
    bool is_truncated;
    bool is_dispatched; /* something ran: the deadline notice may be used up on it */
    bool has_shell;     /* shell is filled: a command finished or went to the background */
    struct shell_facts shell;
    bool is_canceled;   /* the task was cancelled while it ran */
    bool has_run_again; /* in a replay: it did not come out of the record */
    bool is_refused;    /* a gate said no: nothing ran and no call is recorded */
    bool is_approved;   /* a person was asked, now or before, and let it pass */
    struct opened_hosts {
        size_t *rules; /* of approvals: open for this call */
        size_t len, cap;
    } opened;
};

void call_outcome_clear (struct call_outcome *o);
#define _cleanup_outcome_ _cleanup_ (call_outcome_clear)

/* The answer of a call, fenced under "tool:<name>". */
void outcome_set_result (struct call_outcome *o, const char *name, enum tool_status status,
                         const char *text, size_t len);
/* The text alone, fenced under "<kind>:<name>". */
void outcome_set_text (struct call_outcome *o, const char *kind, const char *name, const char *text,
                       size_t len);
/* The runtime's own unfenced words: the call reached no tool. */
void outcome_set_error (struct call_outcome *o, const char *fmt, ...) _printf_ (2, 3);
/* After the runtime's words what the tool itself said of the cause, fenced under "tool:<name>". */
void outcome_add_words (struct call_outcome *o, const char *name, const char *words);
/* A string of a call's input that must be there and not blank; NULL after an error in <out>.
 * Borrowed from <input>. */
const char *outcome_need_text (const char *tool, const json_t *input, const char *key,
                               struct call_outcome *out);
