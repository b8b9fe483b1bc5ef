/* SPDX-License-Identifier: Apache-2.0
 *
 * Spans under observability.otel_endpoint alone, and under conventions: capsule: five kinds of
 * capsule.* spans, each one POST of OTLP's JSON over a connection of its own (records.md 11).
 *
 * Always true: the lines come in under the trace's lock and become bodies in a bounded queue; one
 * thread, started by the first of them, sends them one by one. A line carries when it was written
 * and how long its work took; the start of an inference is where the work before it ended.
 */
#pragma once

#include "fs/root.h"
#include "trace/export/trace_ids.h"
#include "trace/lines/writer.h"

struct capsule_spans;

struct capsule_spans_spec {
    const char *endpoint; /* [scheme://]host:port[/prefix] */
    const char *capsule_name, *capsule_version;
    struct fs_root *records;   /* borrowed: logs/otel.log */
    struct redactor *redactor; /* borrowed, may be NULL */
};

/* Starts nothing yet: the first span does. Never fails; an endpoint nothing can be sent to shows in
 * the log. */
struct capsule_spans *capsule_spans_new (const struct capsule_spans_spec *spec);
/* One line that was written, in the file's order. */
void capsule_spans_line (struct capsule_spans *o, enum trace_event_type event, const void *payload);
void capsule_spans_work_begin (struct capsule_spans *o);
void capsule_spans_work_end (struct capsule_spans *o, const char *exit_status);
/* False when no task runs. Any thread. */
bool capsule_spans_traceparent (struct capsule_spans *o, char out[TRACEPARENT_LEN + 1]);
/* Sends what is waiting, at most <patience_ms>, and frees. */
void capsule_spans_end (struct capsule_spans *o, uint64_t patience_ms);
