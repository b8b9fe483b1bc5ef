/* SPDX-License-Identifier: Apache-2.0
 *
 * The trace writer: one whole line a write(2), in the order events happen (spec/records.md 3.1).
 *
 * Thread-safe; a call returns once its line is in the file. Always true: a line names a parent that
 * is already in the file; the writer alone knows the running task's and turn's node, taken from the
 * lines it wrote.
 */
#pragma once

#include "base/error.h"
#include "base/ids.h"
#include "base/secret.h"
#include "fs/root.h"
#include "trace/lines/events.h"

struct trace_writer;

/* Opens trace.jsonl below the records directory, creating it. <redactor> is borrowed and may be
 * NULL. Fails with E-RUN-050 (a link or odd file there) or E-IO-003. */
struct trace_writer *trace_writer_new (struct fs_root *records, const char *session_id,
                                       struct redactor *redactor, struct mur_error **err);
/* Opens the trace of a session that is over, to append what was learnt of it since: a torn last
 * line is ended first, lines hang from <session_node> (its session_start; NULL: they carry no
 * parent_id). Fails with E-RUN-050 or E-IO-003. */
struct trace_writer *
trace_writer_reopen (struct fs_root *records, const char *file_name, const char *session_id,
                     const char *session_node, struct mur_error **err);
void trace_writer_free (struct trace_writer *w);
DEFINE_CLEANUP (struct trace_writer, trace_writer_free)

/* Appends one event; <payload> is its struct trace_<name>. The line's id is left in *id when id is
 * not NULL. Fails with E-IO-003. w may be NULL (nothing is recorded, true). */
bool trace_write (struct trace_writer *w, enum trace_event_type event, const void *payload,
                  struct id *id, struct mur_error **err);
/* The same below another node than the event's usual one; <parent_id> is used for
 * TRACE_PARENT_PLAN. */
bool trace_write_under (struct trace_writer *w, enum trace_parent parent, const char *parent_id,
                        enum trace_event_type event, const void *payload, struct id *id,
                        struct mur_error **err);

/* A line as it stands in the file, its end included. */
struct trace_line {
    const char *event_id;
    const char *text;
    size_t len;
};

/* Called for each line that was written, in file order, under the writer's lock: it must not block
 * and not write a line. */
typedef void trace_observer_fn (void *ctx, enum trace_event_type event, const void *payload,
                                const struct trace_line *line);
void trace_writer_observe (struct trace_writer *w, trace_observer_fn *fn, void *ctx);

/* TRACE (w, err, session_end, .total_turns = 3, .exit_status = "ok"): unset members read as zero,
 * null or left out. */
#define TRACE(w, err, name, ...)                                                                   \
    trace_write ((w), TRACE_EVENT_##name, &(struct trace_##name){ __VA_ARGS__ }, NULL, (err))

/* The text a free-text field carries: secrets replaced, cut to 2000 bytes on a character boundary.
 * The caller frees it. */
char *trace_free_text (struct trace_writer *w, const char *text);
