/* SPDX-License-Identifier: Apache-2.0
 *
 * From lines of a trace to OTLP: whatever the lines say, both encodings are well-formed and carry
 * the same number of spans.
 */
#include "tests/fuzz/fuzzing.h"

#include "base/json.h"
#include "trace/export/gen_ai.h"

#include <string.h>

#define SPANS_MAX 256

struct spans {
    struct telemetry_span *items[SPANS_MAX];
    size_t len;
};

static void
keep (void *ctx, struct telemetry_span *span)
{
    struct spans *s = ctx;
    if (s->len < SPANS_MAX)
        s->items[s->len++] = span;
    else
        span_free (span);
}

static uint64_t
varint (const uint8_t **at, const uint8_t *end)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        assert (*at < end && shift < 64);
        value |= (uint64_t)(**at & 0x7f) << shift;
        if (! (*(*at)++ & 0x80))
            return value;
    }
}

/* Walks a message; <path> says which fields are messages: resourceSpans 1, scopeSpans 2, spans 2.
 * Counts the last. */
static size_t
count_spans (const uint8_t *at, const uint8_t *end, const unsigned *path)
{
    size_t count = 0;
    while (at < end) {
        uint64_t tag = varint (&at, end);
        assert (tag >> 3);
        size_t fixed = (tag & 7) == 1 ? 8 : (tag & 7) == 5 ? 4 : 0;
        if ((tag & 7) == 2) {
            uint64_t len = varint (&at, end);
            assert (len <= (uint64_t)(end - at));
            if (tag >> 3 == *path)
                count += path[1] ? count_spans (at, at + len, path + 1) : 1;
            at += len;
        } else if (fixed) {
            assert ((size_t)(end - at) >= fixed);
            at += fixed;
        } else {
            assert ((tag & 7) == 0);
            varint (&at, end);
        }
    }
    return count;
}

static void
check (const struct spans *s)
{
    static const unsigned path[] = { 1, 2, 2, 0 };
    const struct telemetry_source source = { .scope_version = "0" };
    struct otlp_writer binary = { .encoding = OTLP_PROTOBUF }, text = { .encoding = OTLP_JSON };
    telemetry_encode_spans (&binary, &source, s->items, s->len);
    telemetry_encode_spans (&text, &source, s->items, s->len);
    const uint8_t *data = (const uint8_t *)binary.out.data;
    assert (count_spans (data, data + binary.out.len, path) == s->len);
    _cleanup_json_ json_t *whole = json_loadb (text.out.data, text.out.len, JSON_ALLOW_NUL, NULL);
    const json_t *scopes = json_object_get (
        json_array_get (json_object_get (whole, "resourceSpans"), 0), "scopeSpans");
    assert (json_array_size (json_object_get (json_array_get (scopes, 0), "spans")) == s->len);
    buf_free (&binary.out);
    buf_free (&text.out);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    struct spans spans = { 0 };
    const struct gen_ai_spec spec = { .agent_name = "agent",
                                      .session_id = "ses_1",
                                      .content = GEN_AI_CONTENT_FULL,
                                      .sample = 1,
                                      .sends_pending = true,
                                      .emit = keep,
                                      .ctx = &spans };
    struct gen_ai *g = gen_ai_new (&spec);
    for (const uint8_t *at = data, *end = data + size; at < end;) {
        const uint8_t *stop = memchr (at, '\n', (size_t)(end - at));
        size_t len = (size_t)((stop ? stop : end) - at);
        _cleanup_json_ json_t *line = json_loadb ((const char *)at, len, 0, NULL);
        if (line)
            gen_ai_line (g, line);
        at += len + 1;
    }
    gen_ai_end (g);
    check (&spans);
    for (size_t i = 0; i < spans.len; i++)
        span_free (spans.items[i]);
    gen_ai_free (g);
    return 0;
}
