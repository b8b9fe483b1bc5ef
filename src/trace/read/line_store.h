/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the lines of a trace are, and one of them at a time: a file, or bytes, without ever holding
 * more than a window of it.
 */
#pragma once

#include "trace/lines/events.h"
#include "trace/read/reader.h"

struct trace_lines;

/* A line without its end, valid until the next is read. */
struct trace_text {
    const char *text;
    size_t len;
    int errno_value; /* of a read that failed; 0: the end */
};

/* Takes the descriptor over. */
struct trace_lines *trace_lines_new (int fd);
/* Copies the bytes. */
struct trace_lines *trace_lines_new_text (const char *text, size_t len);
void trace_lines_free (struct trace_lines *l);

/* The line that begins at an offset. False at the end and when it cannot be read. */
bool trace_lines_read (struct trace_lines *l, uint64_t offset, struct trace_text *line);
/* Remembers where an event is. */
void trace_lines_add (struct trace_lines *l, uint64_t offset, enum trace_event_type type);
uint64_t trace_lines_offset (const struct trace_lines *l, size_t index);
enum trace_event_type trace_lines_type (const struct trace_lines *l, size_t index);
/* Where the next event that is asked for goes: the place of the one asked for TRACE_HELD ago. */
struct trace_event *trace_lines_next_place (struct trace_lines *l);
