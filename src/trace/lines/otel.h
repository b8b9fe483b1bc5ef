/* SPDX-License-Identifier: Apache-2.0
 *
 * Export of spans: what the trace records as it happens, sent to an OpenTelemetry collector as JSON
 * over HTTP (spec/records.md 11).
 *
 * Callers: session/launch/launch.c makes it and hands it the trace's lines; whoever sends an A2A
 * message asks for the traceparent. Always true: nothing waits for a collector but the end of the
 * session, and that not for long; a span that could not be sent is one line of logs/otel.log and
 * nothing else; the trace is the same with and without it.
 */
#pragma once

#include "fs/root.h"
#include "trace/lines/writer.h"

#define OTEL_TRACEPARENT_LEN 55

struct otel;

struct otel_spec {
    const char *endpoint; /* observability.otel_endpoint */
    const char *capsule_name, *capsule_version;
    struct fs_root *records;   /* borrowed: logs/otel.log */
    struct redactor *redactor; /* borrowed, may be NULL */
};

/* Starts nothing yet: the first span does. Never fails; an endpoint nothing can be sent to shows in
 * the log. */
struct otel *otel_new (const struct otel_spec *spec);
/* Sees every line the writer writes from now on. */
void otel_watch (struct otel *o, struct trace_writer *w);
/* Work without a trace of its own, as a task would be: a script capsule's run. */
void otel_work_begin (struct otel *o);
void otel_work_end (struct otel *o, const char *exit_status);
/* The traceparent of what the running task sends: "00-<trace>-<its capsule.session span>-01". False
 * when no task runs or <o> is NULL. Any thread. */
bool otel_traceparent (struct otel *o, char out[OTEL_TRACEPARENT_LEN + 1]);
/* Sends what is waiting, at most <patience_ms>, and frees. The writer must not write any more. */
void otel_end (struct otel *o, uint64_t patience_ms);

/* The span id of a W3C traceparent of version 00 (16 digits), or false. */
bool otel_parse_traceparent (const char *text, char span_id[17]);
