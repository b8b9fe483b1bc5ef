/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/export/capsule_span.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/keys/token.h"

#include <string.h>

static void
put_key (struct buf *b, const char *key, const char *type)
{
    buf_puts (b, b->len ? ",{\"key\":" : "{\"key\":");
    json_append_string (b, key, strlen (key));
    buf_printf (b, ",\"value\":{\"%s\":", type);
}

static void
put_string (struct buf *b, const char *key, const char *value)
{
    put_key (b, key, "stringValue");
    json_append_string (b, value, strlen (value));
    buf_puts (b, "}}");
}

void
span_string (struct span *s, struct redactor *redactor, const char *key, const char *value)
{
    _cleanup_free_ char *clean = redactor ? redactor_apply (redactor, value) : NULL;
    put_string (&s->attributes, key, clean ? clean : value);
}

void
span_int (struct span *s, const char *key, int64_t value)
{
    put_key (&s->attributes, key, "intValue");
    buf_printf (&s->attributes, "\"%lld\"}}", (long long)value);
}

void
span_maybe_string (struct span *s, struct redactor *redactor, const char *key, const char *value)
{
    if (value)
        span_string (s, redactor, key, value);
}

void
span_maybe_int (struct span *s, const char *key, struct trace_num value)
{
    if (value.is_set)
        span_int (s, key, value.value);
}

char *
span_body (struct span *s, const char *service_name, const char *service_version)
{
    struct buf b = { 0 };
    _cleanup_buf_ struct buf service = { 0 };
    put_string (&service, "service.name", service_name);
    put_string (&service, "service.version", service_version);
    buf_printf (
        &b,
        "{\"resourceSpans\":[{\"resource\":{\"attributes\":[%s]},\"scopeSpans\":[{\"scope\":"
        "{\"name\":\"murmur-capsule-runtime\"},\"spans\":[{\"traceId\":\"%s\",\"spanId\":"
        "\"%s\",",
        service.data, s->trace_id, s->span_id);
    if (s->parent_id)
        buf_printf (&b, "\"parentSpanId\":\"%s\",", s->parent_id);
    buf_printf (&b,
                "\"name\":\"%s\",\"kind\":1,\"startTimeUnixNano\":\"%llu\",\"endTimeUnixNano\":"
                "\"%llu\",\"attributes\":[%s],\"status\":{\"code\":1}}]}]}]}",
                s->name, (unsigned long long)s->start_ns, (unsigned long long)s->end_ns,
                s->attributes.data ? s->attributes.data : "");
    buf_free (&s->attributes);
    token_scrub (&token_peer_handle, &b, 0);
    return buf_steal (&b);
}
