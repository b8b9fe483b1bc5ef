/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the mapping share: the state of the running task and the making of a span below
 * it.
 */
#pragma once

#include "trace/export/gen_ai.h"
#include "trace/export/trace_ids.h"
#include "trace/lines/sent_lists.h"

#define NS_PER_MS 1000000ull

/* A task that was received and has not started: whose span it is below. */
struct caller {
    char *task_id;
    struct trace_context context;
};

/* Whose work the spans tell of. */
struct gen_ai_about {
    char *agent_name, *agent_version, *session_id, *provider, *server_host, *model;
    int64_t server_port;
};

/* The running task. */
struct gen_ai_task {
    struct telemetry_span *agent; /* NULL: none runs */
    struct trace_context context;
    char *conversation_id;
    char *input, *output; /* GEN_AI_CONTENT_FULL */
    size_t inference_calls, tool_calls;
};

/* The last tool call. */
struct gen_ai_tool {
    char span[SPAN_ID_LEN + 1];
    uint64_t start_ns, end_ns;
    bool is_last; /* no other work came after it: the command that follows is its own */
};

struct gen_ai {
    struct gen_ai_spec spec;
    struct gen_ai_about about;
    struct gen_ai_metrics metrics;
    struct caller *callers;
    size_t caller_count, caller_cap;

    struct gen_ai_task task;
    struct sent_lists *sent;
    uint64_t chat_began_ms, work_ended_ms, last_ms;
    struct telemetry_span *asking; /* retries so far of the inference whose line is to come */
    struct gen_ai_tool tool;
    char plan_span[SPAN_ID_LEN + 1];
    uint64_t plan_began_ms;
    bool has_had_task;
    uint64_t session_began_ms;
};

/* A member that is a number, or -1. */
int64_t gen_ai_int (const json_t *line, const char *key);
uint64_t gen_ai_duration (const json_t *line);
void gen_ai_add_int (struct attributes *a, const char *key, const json_t *line, const char *member);
/* Text of somebody's: known secrets are replaced. */
void gen_ai_add_text (struct gen_ai *g, struct attributes *a, const char *key, const char *value);
/* A caller that says where its own span is, beside the one above: a link to that. */
void gen_ai_link_caller (struct telemetry_span *s, const json_t *line);
void gen_ai_add_provider (struct gen_ai *g, struct attributes *a);
/* Below <parent> in the running task's trace; no part of it lies before the task. Owned. */
struct telemetry_span *
gen_ai_span (struct gen_ai *g, const char *name, enum span_kind kind, const char *operation,
             const char *parent, uint64_t start_ms, uint64_t end_ms);
/* A span without length gets the least there is, not before <from_ns>. */
void gen_ai_give_length (struct telemetry_span *s, uint64_t from_ns);
/* <message> is told from GEN_AI_CONTENT_META on; the first type and message count. */
void gen_ai_set_failed (struct gen_ai *g, struct telemetry_span *s, const char *type,
                        const char *message);
/* Hands the span on, or drops it with a trace that is not sampled. */
void gen_ai_emit (struct gen_ai *g, struct telemetry_span *s);

/* One line each: its object, event id and time (gen_ai.c's table). */
typedef void gen_ai_take_fn (struct gen_ai *g, const json_t *line, const char *id, uint64_t ms);
/* (gen_ai_chat.c) */
gen_ai_take_fn gen_ai_inference, gen_ai_retry;
/* Scores that a hook left in the records, below the last task. (gen_ai_evaluations.c) */
void gen_ai_evaluations (struct gen_ai *g, const char *id, uint64_t ms);
/* (gen_ai_tools.c) */
gen_ai_take_fn gen_ai_tool_call, gen_ai_skill_call, gen_ai_shell;
/* (gen_ai_work.c) */
gen_ai_take_fn gen_ai_delegation, gen_ai_member_call, gen_ai_plan_start, gen_ai_plan_step,
    gen_ai_plan_end, gen_ai_compaction, gen_ai_done_check;
