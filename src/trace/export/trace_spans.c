/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/export/trace_spans.h"

#include "base/alloc.h"
#include "trace/export/span_export.h"

#define PIECE_BYTES ((size_t)64 * 1024)
#define BODY_BYTES                                                                                 \
    ((size_t)2 * 1024 * 1024) /* collectors refuse bodies of more than 4 MiB or so                 \
                               */

struct encoding {
    const struct trace_spans_sink *sink;
    struct telemetry_source source;
    struct otlp_writer w;
    bool has_failed;
    struct mur_error *error;
};

static void
hand_on (struct encoding *e)
{
    e->has_failed =
        e->has_failed || ! e->sink->put (e->sink->ctx, e->w.out.data, e->w.out.len, &e->error);
    buf_truncate (&e->w.out, 0);
}

static void
take (void *ctx, struct telemetry_span *span)
{
    struct encoding *e = ctx;
    telemetry_spans_add (&e->w, span);
    span_free (span);
    if (e->w.out.len < (e->sink->takes_bodies ? BODY_BYTES : PIECE_BYTES))
        return;
    if (e->sink->takes_bodies)
        telemetry_spans_end (&e->w);
    hand_on (e);
    if (e->sink->takes_bodies)
        telemetry_spans_begin (&e->w, &e->source);
}

bool
trace_spans_encode (const struct trace *t, const struct otel_settings *settings,
                    struct fs_root *records, const struct trace_spans_sink *sink,
                    struct mur_error **err)
{
    struct encoding e = { .sink = sink, .w.encoding = settings->encoding };
    _cleanup_json_ json_t *start = t->count ? json_incref (trace_at (t, 0)->object) : NULL;
    const struct gen_ai_spec spec = {
        .agent_name = json_get_string (start, "capsule_name"),
        .agent_version = json_get_string (start, "capsule_version"),
        .session_id = json_get_string (start, "session_id"),
        .content = settings->content,
        .sample = 1,
        .records = records,
        .emit = take,
        .ctx = &e,
    };
    span_export_source (settings, &spec, &e.source);
    telemetry_spans_begin (&e.w, &e.source);
    _cleanup_ (gen_ai_freep) struct gen_ai *mapping = gen_ai_new (&spec);
    for (size_t i = 0; i < t->count && ! e.has_failed; i++)
        gen_ai_line (mapping, trace_at (t, i)->object);
    gen_ai_end (mapping);
    telemetry_spans_end (&e.w);
    hand_on (&e);
    attributes_free (&e.source.resource);
    buf_free (&e.w.out);
    return ! e.has_failed || mur_propagate (err, e.error);
}
