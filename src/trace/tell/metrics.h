/* SPDX-License-Identifier: Apache-2.0
 *
 * What a trace adds up to: turns, tokens, calls, latencies, redundant reads. One computation for
 * show, diff and report.
 *
 * Totals come from session_end; without one they are counted from the lines (records.md 8.1).
 */
#pragma once

#include "trace/read/reader.h"

/* A read of something that was read before and not changed since (records.md 8.1, "Redundancy"). */
struct trace_redundant {
    uint32_t index;   /* of a tool_call or plan_step */
    uint32_t earlier; /* what it repeats */
};

struct trace_metrics {
    uint64_t turns, input_tokens, output_tokens, tool_calls, shell_calls, duration_ms;
    char *exit_status; /* owned; NULL without a session_end */
    uint64_t tool_ok, tool_ms;
    uint64_t skill_calls, skill_ok, skill_ms;
    uint64_t shell_ended, shell_ok, shell_ms; /* commands whose exit is known */
    bool is_compacted;
    uint64_t compacted_turn; /* of the first compaction */
    uint64_t tasks;          /* task_end lines */
    struct trace_redundant *redundant;
    size_t redundant_count, redundant_cap;
};

void trace_metrics_read (const struct trace *t, struct trace_metrics *m);
/* What a call is about: its resource_id, else the text under a path-like key of its input, else
 * NULL. Borrowed. */
const char *trace_call_identity (const json_t *call);
void trace_metrics_free (struct trace_metrics *m);
