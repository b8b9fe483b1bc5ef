/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a trace.jsonl back, strictly (spec/records.md 3.8).
 *
 * Always true: unknown events and unknown keys are skipped; a line that is not JSON, or a known
 * event without a required key, is E-TRC-001 naming <path>:<line>; only TRACE_TOLERANT bears a
 * missing session_end and a torn last line.
 */
#pragma once

#include "base/error.h"
#include "base/json.h"

struct trace_event {
    const char *type;   /* borrowed from object */
    const char *id;     /* event_id, "" when the line has none */
    const char *parent; /* parent_id or NULL */
    uint64_t time_ms;
    json_t *object; /* owned by the trace */
    size_t line;    /* 1-based */
};

struct trace {
    char *path;
    struct trace_event *events; /* known events only, in file order */
    size_t count;
    bool is_complete; /* a session_end was read */
    size_t torn_line; /* line number of a torn last line that was skipped, else 0 */
    uint64_t first_ms, last_ms;
    /* event_type of the last readable line, known or not; "" when there is none */
    const char *last_type;
    char *last_type_text; /* owns it */
};

enum trace_mode {
    TRACE_STRICT,   /* a missing session_end is E-TRC-001 */
    TRACE_TOLERANT, /* mur trace show */
    TRACE_FORGIVING /* a missing session_end is borne, a torn line is not (readers that check
                       is_complete themselves) */
};

/* Reads <path>. NULL with E-IO-001 (absent), E-IO-003 (unreadable), E-TRC-001 (empty, malformed,
 * incomplete). */
struct trace *trace_read (const char *path, enum trace_mode mode, struct mur_error **err);
/* The same from bytes; <path> is for messages. */
struct trace *trace_parse (const char *path, const char *text, size_t len, enum trace_mode mode,
                           struct mur_error **err);
void trace_free (struct trace *t);
DEFINE_CLEANUP (struct trace, trace_free)
#define _cleanup_trace_ _cleanup_ (trace_freep)

/* The first event of a type at or after index <from>, or NULL. */
const struct trace_event *trace_find (const struct trace *t, const char *type, size_t from);
