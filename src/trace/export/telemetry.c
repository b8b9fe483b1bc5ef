/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/export/telemetry.h"

#include "base/alloc.h"

#include <string.h>

#define SCOPE_NAME "murmur"
#define SCHEMA_URL "https://opentelemetry.io/schemas/1.44.0"
#define CUMULATIVE 2
/* Status codes of a span: unset, ok, error. */
#define STATUS_ERROR 2
#define FLAG_SAMPLED 1

/* --- attributes --- */

static struct attribute *
attributes_add (struct attributes *a, const char *key, enum attribute_type type)
{
    if (attributes_find (a, key))
        return NULL;
    x_grow (a->items, a->len, a->cap);
    struct attribute *new = &a->items[a->len++];
    *new = (struct attribute){ .key = key, .type = type };
    return new;
}

static char *
cut_text (const char *value)
{
    size_t len = strlen (value);
    if (len <= ATTRIBUTE_LIMIT_BYTES)
        return x_strdup (value);
    return x_asprintf ("%.*s\xe2\x80\xa6", (int)utf8_cut (value, len, ATTRIBUTE_LIMIT_BYTES - 3),
                       value);
}

static void
attributes_text (struct attributes *a, const char *key, enum attribute_type type, const char *value)
{
    if (! value || ! *value)
        return;
    struct attribute *new = attributes_add (a, key, type);
    if (! new)
        return;
    new->text = cut_text (value);
}

void
attributes_string (struct attributes *a, const char *key, const char *value)
{
    attributes_text (a, key, ATTRIBUTE_STRING, value);
}

void
attributes_string_named (struct attributes *a, const char *key, const char *value)
{
    size_t before = a->len;
    attributes_text (a, key, ATTRIBUTE_STRING, value);
    if (a->len > before)
        a->items[before].key = a->items[before].key_text = x_strdup (key);
}

void
attributes_strings (struct attributes *a, const char *key, const char *value)
{
    attributes_text (a, key, ATTRIBUTE_STRINGS, value);
}

void
attributes_int (struct attributes *a, const char *key, int64_t value)
{
    struct attribute *new = attributes_add (a, key, ATTRIBUTE_INT);
    if (new)
        new->number = value;
}

void
attributes_double (struct attributes *a, const char *key, double value)
{
    struct attribute *new = attributes_add (a, key, ATTRIBUTE_DOUBLE);
    if (new)
        new->real = value;
}

void
attributes_bool (struct attributes *a, const char *key, bool value)
{
    struct attribute *new = attributes_add (a, key, ATTRIBUTE_BOOL);
    if (new)
        new->number = value;
}

const struct attribute *
attributes_find (const struct attributes *a, const char *key)
{
    for (size_t i = 0; i < a->len; i++)
        if (str_eq (a->items[i].key, key))
            return &a->items[i];
    return NULL;
}

void
attributes_free (struct attributes *a)
{
    for (size_t i = 0; i < a->len; i++) {
        free (a->items[i].text);
        free (a->items[i].key_text);
    }
    free (a->items);
    *a = (struct attributes){ 0 };
}

/* --- spans --- */

struct telemetry_span *
span_new (const char *name, enum span_kind kind)
{
    struct telemetry_span *s = x_new0 (struct telemetry_span);
    s->name = x_strdup (name);
    s->kind = kind;
    return s;
}

struct attributes *
span_event_add (struct telemetry_span *s, const char *name, uint64_t time_ns)
{
    if (s->event_count == SPAN_EVENTS_MAX)
        return NULL;
    x_grow (s->events, s->event_count, s->event_cap);
    struct span_event *e = &s->events[s->event_count++];
    *e = (struct span_event){ .name = name, .time_ns = time_ns };
    return &e->attributes;
}

void
span_link_add (struct telemetry_span *s, const char *trace_id, const char *span_id)
{
    if (s->link_count == SPAN_LINKS_MAX)
        return;
    x_grow (s->links, s->link_count, s->link_cap);
    struct span_link *l = &s->links[s->link_count++];
    snprintf (l->trace_id, sizeof l->trace_id, "%s", trace_id);
    snprintf (l->span_id, sizeof l->span_id, "%s", span_id);
}

void
span_free (struct telemetry_span *s)
{
    if (! s)
        return;
    for (size_t i = 0; i < s->event_count; i++)
        attributes_free (&s->events[i].attributes);
    free (s->events);
    free (s->links);
    attributes_free (&s->attributes);
    free (s->failure);
    free (s->name);
    free (s);
}

/* --- encoding --- */

static void
encode_value (struct otlp_writer *w, const struct attribute *a)
{
    switch (a->type) {
    case ATTRIBUTE_STRING:
        otlp_string (w, 1, "stringValue", a->text);
        break;
    case ATTRIBUTE_STRINGS:
        otlp_message_begin (w, 5, "arrayValue");
        otlp_list_begin (w, 1, "values");
        otlp_item_begin (w);
        otlp_string (w, 1, "stringValue", a->text);
        otlp_item_end (w);
        otlp_list_end (w);
        otlp_message_end (w);
        break;
    case ATTRIBUTE_INT:
        otlp_int (w, 3, "intValue", a->number);
        break;
    case ATTRIBUTE_DOUBLE:
        otlp_double (w, 4, "doubleValue", a->real);
        break;
    case ATTRIBUTE_BOOL:
        otlp_bool (w, 2, "boolValue", a->number != 0);
        break;
    }
}

static void
encode_attributes (struct otlp_writer *w, unsigned field, const struct attributes *a)
{
    if (! a->len)
        return;
    otlp_list_begin (w, field, "attributes");
    for (size_t i = 0; i < a->len; i++) {
        otlp_item_begin (w);
        otlp_string (w, 1, "key", a->items[i].key);
        otlp_message_begin (w, 2, "value");
        encode_value (w, &a->items[i]);
        otlp_message_end (w);
        otlp_item_end (w);
    }
    otlp_list_end (w);
}

static void
encode_resource (struct otlp_writer *w, const struct telemetry_source *source)
{
    otlp_message_begin (w, 1, "resource");
    encode_attributes (w, 1, &source->resource);
    otlp_message_end (w);
}

static void
encode_scope (struct otlp_writer *w, const struct telemetry_source *source)
{
    otlp_message_begin (w, 1, "scope");
    otlp_string (w, 1, "name", SCOPE_NAME);
    otlp_string (w, 2, "version", source->scope_version);
    otlp_message_end (w);
}

static void
encode_events (struct otlp_writer *w, const struct telemetry_span *s)
{
    if (! s->event_count)
        return;
    otlp_list_begin (w, 11, "events");
    for (size_t i = 0; i < s->event_count; i++) {
        otlp_item_begin (w);
        otlp_fixed64 (w, 1, "timeUnixNano", s->events[i].time_ns);
        otlp_string (w, 2, "name", s->events[i].name);
        encode_attributes (w, 3, &s->events[i].attributes);
        otlp_item_end (w);
    }
    otlp_list_end (w);
}

static void
encode_links (struct otlp_writer *w, const struct telemetry_span *s)
{
    if (! s->link_count)
        return;
    otlp_list_begin (w, 13, "links");
    for (size_t i = 0; i < s->link_count; i++) {
        otlp_item_begin (w);
        otlp_id (w, 1, "traceId", s->links[i].trace_id);
        otlp_id (w, 2, "spanId", s->links[i].span_id);
        otlp_item_end (w);
    }
    otlp_list_end (w);
}

static void
encode_span (struct otlp_writer *w, const struct telemetry_span *s)
{
    otlp_item_begin (w);
    otlp_id (w, 1, "traceId", s->trace_id);
    otlp_id (w, 2, "spanId", s->id);
    if (s->parent[0])
        otlp_id (w, 4, "parentSpanId", s->parent);
    otlp_string (w, 5, "name", s->name);
    otlp_enum (w, 6, "kind", s->kind);
    otlp_fixed64 (w, 7, "startTimeUnixNano", s->start_ns);
    otlp_fixed64 (w, 8, "endTimeUnixNano", s->end_ns);
    encode_attributes (w, 9, &s->attributes);
    encode_events (w, s);
    encode_links (w, s);
    if (s->has_failed) {
        otlp_message_begin (w, 15, "status");
        if (s->failure)
            otlp_string (w, 2, "message", s->failure);
        otlp_enum (w, 3, "code", STATUS_ERROR);
        otlp_message_end (w);
    }
    otlp_fixed32 (w, 16, "flags", FLAG_SAMPLED);
    otlp_item_end (w);
}

/* One resource with one scope, whose list of items is open then. */
static void
batch_begin (struct otlp_writer *w, const struct telemetry_source *source, const char *resources,
             const char *scopes, const char *items)
{
    otlp_begin (w);
    otlp_list_begin (w, 1, resources);
    otlp_item_begin (w);
    encode_resource (w, source);
    otlp_list_begin (w, 2, scopes);
    otlp_item_begin (w);
    encode_scope (w, source);
    otlp_list_begin (w, 2, items);
}

static void
batch_end (struct otlp_writer *w)
{
    otlp_list_end (w);
    otlp_string (w, 3, "schemaUrl", SCHEMA_URL);
    otlp_item_end (w);
    otlp_list_end (w);
    otlp_item_end (w);
    otlp_list_end (w);
    otlp_end (w);
}

void
telemetry_spans_begin (struct otlp_writer *w, const struct telemetry_source *source)
{
    batch_begin (w, source, "resourceSpans", "scopeSpans", "spans");
}

void
telemetry_spans_add (struct otlp_writer *w, const struct telemetry_span *span)
{
    encode_span (w, span);
}

void
telemetry_spans_end (struct otlp_writer *w)
{
    batch_end (w);
}

void
telemetry_encode_spans (struct otlp_writer *w, const struct telemetry_source *source,
                        struct telemetry_span *const *spans, size_t count)
{
    telemetry_spans_begin (w, source);
    for (size_t i = 0; i < count; i++)
        telemetry_spans_add (w, spans[i]);
    telemetry_spans_end (w);
}

static void
encode_histogram_point (struct otlp_writer *w, const struct metric *m, const struct metric_point *p)
{
    otlp_fixed64 (w, 4, "count", p->count);
    otlp_double (w, 5, "sum", p->sum);
    otlp_fixed64s (w, 6, "bucketCounts", p->buckets, m->bound_count + 1);
    otlp_doubles (w, 7, "explicitBounds", m->bounds, m->bound_count);
}

static void
encode_points (struct otlp_writer *w, const struct metric *m, uint64_t start_ns, uint64_t now_ns)
{
    bool is_counter = m->type == METRIC_COUNTER;
    otlp_list_begin (w, 1, "dataPoints");
    for (size_t i = 0; i < m->point_count; i++) {
        const struct metric_point *p = &m->points[i];
        otlp_item_begin (w);
        otlp_fixed64 (w, 2, "startTimeUnixNano", start_ns);
        otlp_fixed64 (w, 3, "timeUnixNano", now_ns);
        if (is_counter)
            otlp_sfixed64 (w, 6, "asInt", p->total);
        else
            encode_histogram_point (w, m, p);
        encode_attributes (w, is_counter ? 7 : 9, &p->attributes);
        otlp_item_end (w);
    }
    otlp_list_end (w);
    otlp_enum (w, 2, "aggregationTemporality", CUMULATIVE);
    if (is_counter)
        otlp_bool (w, 3, "isMonotonic", true);
}

static void
encode_metric (struct otlp_writer *w, const struct metric *m, uint64_t start_ns, uint64_t now_ns)
{
    bool is_counter = m->type == METRIC_COUNTER;
    otlp_item_begin (w);
    otlp_string (w, 1, "name", m->name);
    otlp_string (w, 2, "description", m->description);
    otlp_string (w, 3, "unit", m->unit);
    otlp_message_begin (w, is_counter ? 7 : 9, is_counter ? "sum" : "histogram");
    encode_points (w, m, start_ns, now_ns);
    otlp_message_end (w);
    otlp_item_end (w);
}

void
telemetry_encode_metrics (struct otlp_writer *w, const struct telemetry_source *source,
                          const struct metric *metrics, size_t count, uint64_t start_ns,
                          uint64_t now_ns)
{
    batch_begin (w, source, "resourceMetrics", "scopeMetrics", "metrics");
    for (size_t i = 0; i < count; i++)
        if (metrics[i].point_count)
            encode_metric (w, &metrics[i], start_ns, now_ns);
    batch_end (w);
}
