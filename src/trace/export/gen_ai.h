/* SPDX-License-Identifier: Apache-2.0
 *
 * From trace lines to spans named by OpenTelemetry's GenAI conventions: a task is invoke_agent, an
 * inference with all its retries is chat, a tool call is execute_tool with the command it ran
 * below.
 *
 * Always true: the same lines give the same spans, ids and times included, whether they come while
 * the session runs or from its finished trace; lines need no order beyond the file's. Nothing of
 * what was said leaves below GEN_AI_CONTENT_FULL, and no command line below GEN_AI_CONTENT_META.
 * One thread uses it.
 */
#pragma once

#include "base/json.h"
#include "fs/root.h"
#include "trace/export/gen_ai_metrics.h"
#include "trace/export/telemetry.h"

enum gen_ai_content {
    GEN_AI_CONTENT_NONE,
    GEN_AI_CONTENT_META, /* command lines, messages of failures */
    GEN_AI_CONTENT_FULL, /* messages, arguments, results */
};

struct gen_ai_spec {
    const char *agent_name, *agent_version, *session_id;
    enum gen_ai_content content;
    double sample;             /* share of own traces that is kept, 0 to 1 */
    bool sends_pending;        /* an invoke_agent span at a task's start, too */
    struct fs_root *records;   /* borrowed: blobs; NULL: no content */
    struct redactor *redactor; /* borrowed, may be NULL */
    /* Takes each span over, in the order they end. */
    void (*emit) (void *ctx, struct telemetry_span *span);
    void *ctx;
};

struct gen_ai;

/* Copies what the spec's texts say. */
struct gen_ai *gen_ai_new (const struct gen_ai_spec *spec);
/* One line of the trace, parsed. Unknown events and odd members are passed over. */
void gen_ai_line (struct gen_ai *g, const json_t *line);
/* When the model was asked, which no line says. <time_ms> Unix. */
void gen_ai_chat_begins (struct gen_ai *g, uint64_t time_ms);
/* Work without a trace of its own: a script's run, as a task would be. */
void gen_ai_work_begins (struct gen_ai *g, const char *event_id, uint64_t time_ms);
void gen_ai_work_ends (struct gen_ai *g, const char *exit_status, uint64_t time_ms);
/* No line follows: a task that still runs was killed, and ends as a failure where its lines end. */
void gen_ai_end (struct gen_ai *g);
/* What the spans so far add up to. Borrowed. */
const struct gen_ai_metrics *gen_ai_metrics_of (const struct gen_ai *g);
void gen_ai_free (struct gen_ai *g);
DEFINE_CLEANUP (struct gen_ai, gen_ai_free)
