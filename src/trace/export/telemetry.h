/* SPDX-License-Identifier: Apache-2.0
 *
 * Spans and metrics as OpenTelemetry's data model has them, and the body of a request that carries
 * a batch of them.
 *
 * Always true: whatever is put into an attribute is well-formed, cut on a character to
 * ATTRIBUTE_LIMIT_BYTES (a cut one ends in "…") and free of known secrets when it passed through
 * attributes_text's redactor. One thread owns a batch.
 */
#pragma once

#include "base/buf.h"
#include "base/secret.h"
#include "trace/export/otlp_writer.h"

#define ATTRIBUTE_LIMIT_BYTES 65536
#define TRACE_ID_LEN          32
#define SPAN_ID_LEN           16

enum attribute_type {
    ATTRIBUTE_STRING,
    ATTRIBUTE_STRINGS, /* text holds them, each ended by NUL */
    ATTRIBUTE_INT,
    ATTRIBUTE_DOUBLE,
    ATTRIBUTE_BOOL,
};

struct attribute {
    const char *key; /* static, unless key_text holds it */
    char *key_text;
    enum attribute_type type;
    char *text;
    int64_t number; /* also the bool */
    double real;
};

struct attributes {
    struct attribute *items;
    size_t len, cap;
};

/* <key> is static. NULL and "" values are left out; so is a second value of one key: the first
 * counts. */
void attributes_string (struct attributes *a, const char *key, const char *value);
/* The same of a key that does not outlive the call. */
void attributes_string_named (struct attributes *a, const char *key, const char *value);
/* One string as a list of one. */
void attributes_strings (struct attributes *a, const char *key, const char *value);
void attributes_int (struct attributes *a, const char *key, int64_t value);
void attributes_double (struct attributes *a, const char *key, double value);
void attributes_bool (struct attributes *a, const char *key, bool value);
const struct attribute *attributes_find (const struct attributes *a, const char *key);
void attributes_free (struct attributes *a);

enum span_kind {
    SPAN_INTERNAL = 1,
    SPAN_SERVER = 2,
    SPAN_CLIENT = 3,
};

struct span_event {
    const char *name; /* static */
    uint64_t time_ns;
    struct attributes attributes;
};

/* Another span that this one has to do with, in whichever trace. */
struct span_link {
    char trace_id[TRACE_ID_LEN + 1], span_id[SPAN_ID_LEN + 1];
};

struct telemetry_span {
    char trace_id[TRACE_ID_LEN + 1], id[SPAN_ID_LEN + 1];
    char parent[SPAN_ID_LEN + 1]; /* "" without */
    char *name;
    enum span_kind kind;
    uint64_t start_ns, end_ns; /* Unix */
    bool has_failed;
    char *failure; /* the status' message, or NULL */
    struct attributes attributes;
    struct span_event *events;
    size_t event_count, event_cap;
    struct span_link *links;
    size_t link_count, link_cap;
};

struct telemetry_span *span_new (const char *name, enum span_kind kind);
/* The attributes of a new event of the span; beyond SPAN_EVENTS_MAX they are dropped (NULL). */
#define SPAN_EVENTS_MAX 128
struct attributes *span_event_add (struct telemetry_span *s, const char *name, uint64_t time_ns);
/* Beyond SPAN_LINKS_MAX they are dropped. */
#define SPAN_LINKS_MAX 128
void span_link_add (struct telemetry_span *s, const char *trace_id, const char *span_id);
void span_free (struct telemetry_span *s);
DEFINE_CLEANUP (struct telemetry_span, span_free)

enum metric_type {
    METRIC_COUNTER,
    METRIC_HISTOGRAM,
};

#define METRIC_BOUNDS_MAX 16

struct metric_point {
    struct attributes attributes;
    uint64_t count;
    int64_t total; /* counter */
    double sum;    /* histogram */
    uint64_t buckets[METRIC_BOUNDS_MAX + 1];
};

struct metric {
    const char *name, *unit, *description; /* static */
    enum metric_type type;
    const double *bounds;
    size_t bound_count;
    struct metric_point *points;
    size_t point_count, point_cap;
};

/* What every batch says of its sender. */
struct telemetry_source {
    struct attributes resource;
    const char *scope_version;
};

/* The body of POST /v1/traces. Owned by the caller's writer. */
/* The same piece by piece. In JSON what stands in w->out between two pieces may be taken away. */
void telemetry_spans_begin (struct otlp_writer *w, const struct telemetry_source *source);
void telemetry_spans_add (struct otlp_writer *w, const struct telemetry_span *span);
void telemetry_spans_end (struct otlp_writer *w);
void telemetry_encode_spans (struct otlp_writer *w, const struct telemetry_source *source,
                             struct telemetry_span *const *spans, size_t count);
/* The body of POST /v1/metrics, cumulative since <start_ns>. */
void telemetry_encode_metrics (struct otlp_writer *w, const struct telemetry_source *source,
                               const struct metric *metrics, size_t count, uint64_t start_ns,
                               uint64_t now_ns);
