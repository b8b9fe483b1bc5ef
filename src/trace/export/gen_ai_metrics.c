/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/export/gen_ai_metrics.h"

#include "base/alloc.h"

#include <string.h>

/* The conventions' advice for each histogram. */
static const double duration_bounds[] = { 0.01, 0.02, 0.04, 0.08,  0.16,  0.32,  0.64,
                                          1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92 };
static const double token_bounds[] = { 1,     4,     16,     64,      256,     1024,     4096,
                                       16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864 };
static const double call_bounds[] = { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512 };

#define BOUNDS(b) .bounds = (b), .bound_count = sizeof (b) / sizeof *(b)
#define DURATION(n, d)                                                                             \
    {                                                                                              \
        .name = n, .unit = "s", .description = d, .type = METRIC_HISTOGRAM,                        \
        BOUNDS (duration_bounds)                                                                   \
    }
#define TOKENS(n, d)                                                                               \
    {                                                                                              \
        .name = n, .unit = "{token}", .description = d, .type = METRIC_COUNTER                     \
    }
#define CALLS(n, d)                                                                                \
    {                                                                                              \
        .name = n, .unit = "{call}", .description = d, .type = METRIC_HISTOGRAM,                   \
        BOUNDS (call_bounds)                                                                       \
    }

static const struct metric all_metrics[GEN_AI_METRIC_COUNT] = {
    [GEN_AI_OPERATION_DURATION] =
        DURATION ("gen_ai.client.operation.duration", "Duration of an inference, retries included"),
    [GEN_AI_TOKEN_USAGE] = { .name = "gen_ai.client.token.usage",
                             .unit = "{token}",
                             .description = "Tokens of an inference",
                             .type = METRIC_HISTOGRAM,
                             BOUNDS (token_bounds) },
    [GEN_AI_INPUT_TOKENS] =
        TOKENS ("gen_ai.client.inference.usage.input_tokens", "Input tokens, cached ones included"),
    [GEN_AI_OUTPUT_TOKENS] =
        TOKENS ("gen_ai.client.inference.usage.output_tokens", "Output tokens"),
    [GEN_AI_CACHE_READ_TOKENS] = TOKENS ("gen_ai.client.inference.usage.cache_read.input_tokens",
                                         "Input tokens served from a cache"),
    [GEN_AI_CACHE_WRITE_TOKENS] = TOKENS ("gen_ai.client.inference.usage.cache_write.input_tokens",
                                          "Input tokens written to a cache"),
    [GEN_AI_REASONING_TOKENS] = TOKENS ("gen_ai.client.inference.usage.reasoning.output_tokens",
                                        "Output tokens of reasoning"),
    [GEN_AI_AGENT_DURATION] = DURATION ("gen_ai.invoke_agent.duration", "Duration of a task"),
    [GEN_AI_AGENT_INFERENCE_CALLS] =
        CALLS ("gen_ai.invoke_agent.inference_calls", "Inferences of a task"),
    [GEN_AI_AGENT_TOOL_CALLS] = CALLS ("gen_ai.invoke_agent.tool_calls", "Tool calls of a task"),
    [GEN_AI_TOOL_DURATION] = DURATION ("gen_ai.execute_tool.duration", "Duration of a tool call"),
};

/* What a metric may be broken down by. */
static const char *const dimensions[] = { "gen_ai.operation.name", "gen_ai.provider.name",
                                          "gen_ai.request.model",  "gen_ai.response.model",
                                          "gen_ai.agent.name",     "gen_ai.tool.name",
                                          "gen_ai.token.type",     "error.type",
                                          "server.address",        "server.port" };

void
gen_ai_metrics_init (struct gen_ai_metrics *m)
{
    memcpy (m->metrics, all_metrics, sizeof all_metrics);
}

static void
copy_dimensions (struct attributes *to, const struct attributes *from)
{
    for (size_t i = 0; i < sizeof dimensions / sizeof *dimensions; i++) {
        const struct attribute *a = attributes_find (from, dimensions[i]);
        if (a && a->type == ATTRIBUTE_STRING)
            attributes_string (to, dimensions[i], a->text);
        else if (a && a->type == ATTRIBUTE_INT)
            attributes_int (to, dimensions[i], a->number);
    }
}

static bool
are_equal (const struct attributes *a, const struct attributes *b)
{
    if (a->len != b->len)
        return false;
    for (size_t i = 0; i < a->len; i++)
        if (! str_eq (a->items[i].key, b->items[i].key) ||
            ! str_eq (a->items[i].text, b->items[i].text) ||
            a->items[i].number != b->items[i].number)
            return false;
    return true;
}

static struct metric_point *
point_of (struct metric *m, const struct attributes *from)
{
    struct attributes key = { 0 };
    copy_dimensions (&key, from);
    for (size_t i = 0; i < m->point_count; i++)
        if (are_equal (&m->points[i].attributes, &key)) {
            attributes_free (&key);
            return &m->points[i];
        }
    x_grow (m->points, m->point_count, m->point_cap);
    m->points[m->point_count] = (struct metric_point){ .attributes = key };
    return &m->points[m->point_count++];
}

void
gen_ai_metrics_add (struct gen_ai_metrics *m, enum gen_ai_metric which,
                    const struct attributes *from, double value)
{
    struct metric *metric = &m->metrics[which];
    struct metric_point *p = point_of (metric, from);
    p->count++;
    if (metric->type == METRIC_COUNTER) {
        p->total += (int64_t)value;
        return;
    }
    size_t bucket = 0;
    while (bucket < metric->bound_count && value > metric->bounds[bucket])
        bucket++;
    p->buckets[bucket]++;
    p->sum += value;
}

void
gen_ai_metrics_free (struct gen_ai_metrics *m)
{
    for (size_t i = 0; i < GEN_AI_METRIC_COUNT; i++) {
        for (size_t k = 0; k < m->metrics[i].point_count; k++)
            attributes_free (&m->metrics[i].points[k].attributes);
        free (m->metrics[i].points);
    }
}
