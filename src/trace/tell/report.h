/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur trace report`: many sessions summed up (spec/records.md 8.5).
 */
#pragma once

#include "trace/read/reader.h"
#include "trace/read/text.h"

/* Sums up complete traces, one after the other. */
struct trace_summary;
/* Appends a paragraph on each trace to the report, which is borrowed. */
struct trace_summary *trace_summary_new (struct report *report);
void trace_summary_add (struct trace_summary *s, const struct trace *t);
/* Appends the tables; <workdir> is named in them. */
void trace_summary_end (struct trace_summary *s, const char *workdir);
size_t trace_summary_count (const struct trace_summary *s);
void trace_summary_free (struct trace_summary *s);
DEFINE_CLEANUP (struct trace_summary, trace_summary_free)
