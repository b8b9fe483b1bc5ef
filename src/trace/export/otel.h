/* SPDX-License-Identifier: Apache-2.0
 *
 * Export of a session's spans: what the trace records as it happens, sent to an OpenTelemetry
 * collector (records.md 11).
 *
 * Always true: nothing waits for a collector but the end of the session, and that not for long;
 * what could not be sent is told in logs/otel.log and nowhere else; the trace is the same with and
 * without it.
 */
#pragma once

#include "fs/root.h"
#include "trace/export/otel_settings.h"
#include "trace/export/trace_ids.h"
#include "trace/lines/writer.h"

struct otel;

struct otel_spec {
    const struct otel_settings *settings; /* borrowed; is_on */
    const char *capsule_name, *capsule_version, *session_id;
    struct fs_root *records;   /* borrowed: logs/otel.log, blobs */
    struct redactor *redactor; /* borrowed, may be NULL */
};

/* Starts nothing yet: the first span does. Never fails; a collector that cannot be reached shows in
 * the log. */
struct otel *otel_new (const struct otel_spec *spec);
/* Sees every line the writer writes from now on. */
void otel_watch (struct otel *o, struct trace_writer *w);
/* The model is asked now: what the line to come took begins here. <o> may be NULL. */
void otel_chat_begins (struct otel *o);
/* Work without a trace of its own, as a task would be: a script capsule's run. */
void otel_work_begin (struct otel *o);
void otel_work_end (struct otel *o, const char *exit_status);
/* The traceparent of what the running task sends. False when no task runs or <o> is NULL. Any
 * thread. */
bool otel_traceparent (struct otel *o, char out[TRACEPARENT_LEN + 1]);
/* Sends what is waiting, at most <patience_ms>, and frees. The writer must not write any more. */
void otel_end (struct otel *o, uint64_t patience_ms);
