/* SPDX-License-Identifier: Apache-2.0
 *
 * Ids of spans, derived from the trace lines they are of: what is sent while a session runs and
 * what is exported from its finished trace carry the same ids.
 */
#pragma once

#include "trace/export/telemetry.h"

#define TRACEPARENT_LEN 55

/* What a W3C traceparent of version 00 says. */
struct trace_context {
    char trace_id[TRACE_ID_LEN + 1], span_id[SPAN_ID_LEN + 1]; /* "" without */
    bool is_sampled;
};

/* False for anything but a valid traceparent (NULL too); *out is then empty and sampled. */
bool trace_context_parse (const char *text, struct trace_context *out);
/* "00-<trace>-<span>-<flags>". */
void trace_context_text (const struct trace_context *c, char out[TRACEPARENT_LEN + 1]);
/* <what> tells several spans of one line apart. */
void span_id_of (const char *event_id, const char *what, char out[SPAN_ID_LEN + 1]);
/* The context a task's own spans have: its caller's trace when there is one, its own span below. */
void trace_context_of_task (const char *task_start_id, const struct trace_context *caller,
                            struct trace_context *out);
