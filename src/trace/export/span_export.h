/* SPDX-License-Identifier: Apache-2.0
 *
 * The export of a running session by the GenAI conventions: lines are queued as they are written,
 * and one thread of its own reads, maps, batches and sends them.
 *
 * Always true: who writes a line never waits for a collector; the queue is bounded, and what did
 * not fit is counted and told; a failure is at most one line of logs/otel.log a kind and minute;
 * the end waits for a collector as long as span_export_end is told and no longer.
 */
#pragma once

#include "trace/export/otel_settings.h"

struct span_export;

struct span_export_spec {
    const struct otel_settings *settings; /* borrowed */
    /* All but emit and ctx. */
    struct gen_ai_spec mapping;
    struct fs_root *records; /* borrowed: logs/otel.log */
};

struct span_export *span_export_new (const struct span_export_spec *spec);
/* One line of the trace, with or without its line end (copied). Any thread. */
void span_export_line (struct span_export *e, const char *line, size_t len);
/* What no line says; <exit_status> is copied. */
void span_export_chat_begins (struct span_export *e);
void span_export_work_begins (struct span_export *e, const char *event_id);
void span_export_work_ends (struct span_export *e, const char *exit_status);
/* Sends what waits, at most <patience_ms>, and frees. */
void span_export_end (struct span_export *e, uint64_t patience_ms);

/* The attributes of the sender, the settings' over our own. */
void span_export_source (const struct otel_settings *settings, const struct gen_ai_spec *mapping,
                         struct telemetry_source *out);
