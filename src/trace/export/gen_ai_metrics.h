/* SPDX-License-Identifier: Apache-2.0
 *
 * Metrics of the GenAI conventions, cumulative since the session began: durations as histograms
 * with the convention's buckets, tokens as counters and as the older histogram that receivers still
 * read.
 */
#pragma once

#include "trace/export/telemetry.h"

enum gen_ai_metric {
    GEN_AI_OPERATION_DURATION,
    GEN_AI_TOKEN_USAGE,
    GEN_AI_INPUT_TOKENS,
    GEN_AI_OUTPUT_TOKENS,
    GEN_AI_CACHE_READ_TOKENS,
    GEN_AI_CACHE_WRITE_TOKENS,
    GEN_AI_REASONING_TOKENS,
    GEN_AI_AGENT_DURATION,
    GEN_AI_AGENT_INFERENCE_CALLS,
    GEN_AI_AGENT_TOOL_CALLS,
    GEN_AI_TOOL_DURATION,
    GEN_AI_METRIC_COUNT,
};

struct gen_ai_metrics {
    struct metric metrics[GEN_AI_METRIC_COUNT];
};

void gen_ai_metrics_init (struct gen_ai_metrics *m);
/* Adds one value under the attributes of <from> that the metric is kept by. */
void gen_ai_metrics_add (struct gen_ai_metrics *m, enum gen_ai_metric which,
                         const struct attributes *from, double value);
void gen_ai_metrics_free (struct gen_ai_metrics *m);
