/* SPDX-License-Identifier: Apache-2.0
 *
 * Inferences as chat spans: one over all retries, tokens as the provider counted them.
 */
#include "trace/export/gen_ai_internal.h"

#include "base/alloc.h"
#include "trace/export/gen_ai_content.h"
#include "trace/read/sent_messages.h"

#include <stdio.h>
#include <string.h>

/* --- chat --- */

static void
add_usage (struct attributes *a, const json_t *line)
{
    int64_t input = gen_ai_int (line, "input_tokens_actual"),
            output = gen_ai_int (line, "output_tokens_actual"),
            cached = gen_ai_int (line, "cached_tokens"),
            written = gen_ai_int (line, "cache_write_tokens");
    /* The convention's input holds what came from a cache and went to one. */
    int64_t whole =
        input < 0 ? -1 : input + (cached > 0 ? cached : 0) + (written > 0 ? written : 0);
    if (whole >= 0)
        attributes_int (a, "gen_ai.usage.input_tokens", whole);
    if (output >= 0)
        attributes_int (a, "gen_ai.usage.output_tokens", output);
    if (whole >= 0 && output >= 0)
        attributes_int (a, "gen_ai.usage.total_tokens", whole + output);
    gen_ai_add_int (a, "gen_ai.usage.cache_read.input_tokens", line, "cached_tokens");
    gen_ai_add_int (a, "gen_ai.usage.cache_write.input_tokens", line, "cache_write_tokens");
    gen_ai_add_int (a, "gen_ai.usage.cache_creation.input_tokens", line, "cache_write_tokens");
    gen_ai_add_int (a, "gen_ai.usage.reasoning.output_tokens", line, "thinking_tokens");
    gen_ai_add_int (a, "murmur.usage.estimated_input_tokens", line, "input_tokens");
    gen_ai_add_int (a, "murmur.usage.estimated_output_tokens", line, "output_tokens");
}

static void
count_usage (struct gen_ai *g, const struct telemetry_span *s)
{
    static const struct {
        const char *key, *token_type;
        enum gen_ai_metric metric;
    } counts[] = {
        { "gen_ai.usage.input_tokens", "input", GEN_AI_INPUT_TOKENS },
        { "gen_ai.usage.output_tokens", "output", GEN_AI_OUTPUT_TOKENS },
        { "gen_ai.usage.cache_read.input_tokens", NULL, GEN_AI_CACHE_READ_TOKENS },
        { "gen_ai.usage.cache_write.input_tokens", NULL, GEN_AI_CACHE_WRITE_TOKENS },
        { "gen_ai.usage.reasoning.output_tokens", NULL, GEN_AI_REASONING_TOKENS },
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const struct attribute *a = attributes_find (&s->attributes, counts[i].key);
        if (! a)
            continue;
        gen_ai_metrics_add (&g->metrics, counts[i].metric, &s->attributes, (double)a->number);
        if (! counts[i].token_type)
            continue;
        struct attributes typed = { 0 };
        attributes_string (&typed, "gen_ai.operation.name", "chat");
        attributes_string (&typed, "gen_ai.provider.name", g->about.provider);
        attributes_string (&typed, "gen_ai.request.model", g->about.model);
        attributes_string (&typed, "gen_ai.token.type", counts[i].token_type);
        gen_ai_metrics_add (&g->metrics, GEN_AI_TOKEN_USAGE, &typed, (double)a->number);
        attributes_free (&typed);
    }
}

/* What was said; the task's first input and last answer are kept for its own span. */
static void
add_messages (struct gen_ai *g, struct attributes *a, const json_t *line)
{
    if (g->spec.content != GEN_AI_CONTENT_FULL || ! g->spec.records)
        return;
    _cleanup_json_ json_t *shas = sent_shas (g->sent, line);
    _cleanup_free_ char *input = gen_ai_input_messages (g->spec.records, shas);
    _cleanup_free_ char *output =
        gen_ai_output_messages (g->spec.records, json_get_string (line, "response_sha"),
                                json_get_string (line, "stop_reason"));
    _cleanup_free_ char *system =
        gen_ai_system_instructions (g->spec.records, json_get_string (line, "system_sha"));
    _cleanup_free_ char *tools = gen_ai_blob (g->spec.records, json_get_string (line, "tools_sha"));
    gen_ai_add_text (g, a, "gen_ai.system_instructions", system);
    gen_ai_add_text (g, a, "gen_ai.input.messages", input);
    gen_ai_add_text (g, a, "gen_ai.output.messages", output);
    gen_ai_add_text (g, a, "gen_ai.tool.definitions", tools);
    if (! g->task.input && input)
        g->task.input = steal_ptr (&input);
    if (output) {
        free (g->task.output);
        g->task.output = steal_ptr (&output);
    }
}

static void
add_inference_error (struct gen_ai *g, struct telemetry_span *s, const json_t *line)
{
    const char *code = json_get_string (line, "error_code");
    int64_t status = gen_ai_int (line, "provider_status");
    if (! code && ! json_object_get (line, "error"))
        return;
    char type[32];
    snprintf (type, sizeof type, "%lld", (long long)status);
    gen_ai_set_failed (g, s,
                       status > 0 ? type
                       : code     ? code
                                  : "_OTHER",
                       json_get_string (line, "error"));
}

void
gen_ai_inference (struct gen_ai *g, const json_t *line, const char *id, uint64_t ms)
{
    const char *model = json_get_string (line, "model");
    _cleanup_free_ char *name = x_asprintf ("chat %s", model ? model : g->about.model);
    uint64_t start = g->chat_began_ms ? g->chat_began_ms : g->work_ended_ms;
    struct telemetry_span *s =
        gen_ai_span (g, name, SPAN_CLIENT, "chat", g->task.context.span_id, start, ms);
    span_id_of (id, "chat", s->id);
    if (g->asking) { /* its retries */
        s->events = g->asking->events;
        s->event_count = g->asking->event_count;
        s->event_cap = g->asking->event_cap;
        g->asking->events = NULL;
        g->asking->event_count = 0;
        span_free (steal_ptr (&g->asking));
    }
    struct attributes *a = &s->attributes;
    gen_ai_add_provider (g, a);
    attributes_string (a, "gen_ai.request.model", model ? model : g->about.model);
    attributes_string (a, "gen_ai.response.model", model ? model : g->about.model);
    gen_ai_add_int (a, "gen_ai.request.max_tokens", line, "max_output_tokens");
    attributes_strings (a, "gen_ai.response.finish_reasons", json_get_string (line, "stop_reason"));
    add_usage (a, line);
    gen_ai_add_int (a, "murmur.turn", line, "turn");
    attributes_string (a, "murmur.origin", json_get_string (line, "origin"));
    gen_ai_add_int (a, "murmur.attempts", line, "attempts");
    add_messages (g, a, line);
    add_inference_error (g, s, line);
    count_usage (g, s);
    gen_ai_metrics_add (&g->metrics, GEN_AI_OPERATION_DURATION, a,
                        (double)(s->end_ns - s->start_ns) / 1e9);
    g->task.inference_calls++;
    g->chat_began_ms = 0;
    gen_ai_emit (g, s);
}

void
gen_ai_retry (struct gen_ai *g, const json_t *line, const char *id, uint64_t ms)
{
    (void)id;
    if (! g->asking)
        g->asking = span_new ("", SPAN_CLIENT);
    struct attributes *a = span_event_add (g->asking, "murmur.retry", ms * NS_PER_MS);
    if (! a)
        return;
    attributes_string (a, "murmur.retry.reason", json_get_string (line, "reason"));
    gen_ai_add_int (a, "murmur.retry.attempt", line, "attempt");
    gen_ai_add_int (a, "http.response.status_code", line, "provider_status");
    gen_ai_add_int (a, "murmur.retry.delay_ms", line, "delay_ms");
}
