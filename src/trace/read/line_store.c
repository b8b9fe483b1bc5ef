/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/read/line_store.h"

#include "base/alloc.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define CHUNK_BYTES ((size_t)64 * 1024)

struct trace_lines {
    int fd; /* -1: all of it is in the window */
    struct {
        uint64_t at; /* offset of its first byte */
        char *data;
        size_t len, cap;
    } window;
    uint64_t *places; /* offset << 8 | type, in file order */
    size_t count, cap;
    struct trace_event held[TRACE_HELD];
    size_t next_place;
};

struct trace_lines *
trace_lines_new (int fd)
{
    struct trace_lines *l = x_new0 (struct trace_lines);
    l->fd = fd;
    return l;
}

struct trace_lines *
trace_lines_new_text (const char *text, size_t len)
{
    struct trace_lines *l = trace_lines_new (-1);
    l->window.data = x_calloc (1, len + 1);
    memcpy (l->window.data, text, len);
    l->window.len = l->window.cap = len;
    return l;
}

void
trace_lines_free (struct trace_lines *l)
{
    if (! l)
        return;
    for (size_t i = 0; i < TRACE_HELD; i++)
        json_decref (l->held[i].object);
    if (l->fd >= 0)
        close (l->fd);
    free (l->window.data);
    free (l->places);
    free (l);
}

/* --- the window --- */

/* Moves it so that it begins at <offset>, keeping what is there of it already. */
static void
move_window (struct trace_lines *l, uint64_t offset)
{
    uint64_t end = l->window.at + l->window.len;
    size_t kept = offset >= l->window.at && offset < end ? (size_t)(end - offset) : 0;
    if (kept)
        memmove (l->window.data, l->window.data + l->window.len - kept, kept);
    l->window.at = offset;
    l->window.len = kept;
}

/* Reads on behind the window. False at the end of the file or with *errno_value set. */
static bool
widen_window (struct trace_lines *l, int *errno_value)
{
    if (l->fd < 0)
        return false;
    if (l->window.cap - l->window.len < CHUNK_BYTES) {
        l->window.cap = l->window.cap ? l->window.cap * 2 : 2 * CHUNK_BYTES;
        l->window.data = x_realloc (l->window.data, l->window.cap);
    }
    ssize_t n;
    do
        n = pread (l->fd, l->window.data + l->window.len, l->window.cap - l->window.len,
                   (off_t)(l->window.at + l->window.len));
    while (n < 0 && errno == EINTR);
    *errno_value = n < 0 ? errno : 0;
    l->window.len += n > 0 ? (size_t)n : 0;
    return n > 0;
}

bool
trace_lines_read (struct trace_lines *l, uint64_t offset, struct trace_text *line)
{
    *line = (struct trace_text){ 0 };
    bool is_inside = offset >= l->window.at && offset < l->window.at + l->window.len;
    if (! is_inside && l->fd >= 0)
        move_window (l, offset);
    else if (! is_inside)
        return false;
    for (size_t looked = 0;;) {
        size_t from = (size_t)(offset - l->window.at);
        const char *text = l->window.data + from;
        size_t there = l->window.len - from;
        const char *end = there > looked ? memchr (text + looked, '\n', there - looked) : NULL;
        if (end) {
            *line = (struct trace_text){ .text = text, .len = (size_t)(end - text) };
            return true;
        }
        looked = there;
        if (from && l->fd >= 0)
            move_window (l, offset);
        if (widen_window (l, &line->errno_value))
            continue;
        *line = (struct trace_text){ l->window.data + (offset - l->window.at), there,
                                     line->errno_value };
        return there && ! line->errno_value;
    }
}

/* --- the events --- */

void
trace_lines_add (struct trace_lines *l, uint64_t offset, enum trace_event_type type)
{
    x_grow (l->places, l->count, l->cap);
    l->places[l->count++] = offset << 8 | type;
}

uint64_t
trace_lines_offset (const struct trace_lines *l, size_t index)
{
    return l->places[index] >> 8;
}

enum trace_event_type
trace_lines_type (const struct trace_lines *l, size_t index)
{
    return (enum trace_event_type) (l->places[index] & 0xff);
}

struct trace_event *
trace_lines_next_place (struct trace_lines *l)
{
    return &l->held[l->next_place++ % TRACE_HELD];
}
