/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/export/trace_spans.h"

#include "base/alloc.h"
#include "trace/export/span_export.h"

struct collected {
    struct telemetry_span **items;
    size_t len, cap;
};

static void
collect (void *ctx, struct telemetry_span *span)
{
    struct collected *c = ctx;
    x_grow (c->items, c->len, c->cap);
    c->items[c->len++] = span;
}

void
trace_spans_encode (const struct trace *t, const struct otel_settings *settings,
                    struct fs_root *records, struct buf *out)
{
    struct collected spans = { 0 };
    const json_t *start = t->count ? t->events[0].object : NULL;
    const struct gen_ai_spec spec = {
        .agent_name = json_get_string (start, "capsule_name"),
        .agent_version = json_get_string (start, "capsule_version"),
        .session_id = json_get_string (start, "session_id"),
        .content = settings->content,
        .sample = 1,
        .records = records,
        .emit = collect,
        .ctx = &spans,
    };
    _cleanup_ (gen_ai_freep) struct gen_ai *mapping = gen_ai_new (&spec);
    for (size_t i = 0; i < t->count; i++)
        gen_ai_line (mapping, t->events[i].object);
    gen_ai_end (mapping);
    struct telemetry_source source;
    span_export_source (settings, &spec, &source);
    struct otlp_writer w = { .encoding = settings->encoding };
    telemetry_encode_spans (&w, &source, spans.items, spans.len);
    *out = w.out;
    attributes_free (&source.resource);
    for (size_t i = 0; i < spans.len; i++)
        span_free (spans.items[i]);
    free (spans.items);
}
