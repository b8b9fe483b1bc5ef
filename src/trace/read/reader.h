/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a trace.jsonl back, strictly (spec/records.md 3.8).
 *
 * Always true: unknown events and unknown keys are skipped; a line that is not JSON, or a known
 * event without a required key, is E-TRC-001 naming <path>:<line>; only TRACE_TOLERANT bears a
 * missing session_end and a torn last line. A trace of any size takes eight bytes an event: lines
 * are read once to judge them, and again when one is asked for.
 */
#pragma once

#include "base/error.h"
#include "base/json.h"

/* Events a caller may hold at once: the next one that is asked for takes the place of the oldest.
 */
#define TRACE_HELD 64

struct trace_event {
    const char *type;
    const char *id;     /* event_id, "" when the line has none; borrowed from object */
    const char *parent; /* parent_id or NULL */
    uint64_t time_ms;
    json_t *object; /* the trace's: take a reference to keep it longer than TRACE_HELD events */
    size_t index;   /* of this event in the trace */
};

struct trace {
    char *path;
    size_t count;     /* known events, in file order */
    bool is_complete; /* a session_end was read */
    size_t torn_line; /* line number of a torn last line that was skipped, else 0 */
    uint64_t first_ms, last_ms;
    /* event_type of the last readable line, known or not; "" when there is none */
    const char *last_type;
    char *last_type_text; /* owns it */
    struct trace_lines *lines;
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

/* The type of the event at an index below t->count: it need not be read for that. */
const char *trace_type (const struct trace *t, size_t index);
/* The event at an index below t->count, read again from its line. One whose line is no longer what
 * it was has an empty object. */
const struct trace_event *trace_at (const struct trace *t, size_t index);
/* The first event of a type at or after index <from>, or NULL. */
const struct trace_event *trace_find (const struct trace *t, const char *type, size_t from);
/* Iterates over the events of one type: for (const struct trace_event *e = NULL; (e = trace_next
 * (t, "shell", e));) */
const struct trace_event *
trace_next (const struct trace *t, const char *type, const struct trace_event *after);
size_t trace_count (const struct trace *t, const char *type);
/* The session's id, as the first line has it, or "—". Borrowed as an event is. */
const char *trace_session_id (const struct trace *t);
