/* SPDX-License-Identifier: Apache-2.0 */
#include "session/model/stream_frames.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "door/tasks/tasks.h"
#include "session/state/session.h"

#include <string.h>

#define PROGRESS_EVERY_MS 250

static void
on_chunk (void *ctx, const char *text, size_t len)
{
    struct frames *f = ctx;
    if (! len)
        return;
    f->has_text = true;
    streams_text (f->streams, f->task, text, len, false);
}

static void
on_thinking (void *ctx, const char *text, size_t len)
{
    struct frames *f = ctx;
    if (len)
        streams_thinking (f->streams, f->task, text, len);
}

static struct frame_call *
find_call (struct frames *f, const char *id)
{
    for (size_t i = 0; i < f->len; i++)
        if (strcmp (f->calls[i].id, id) == 0)
            return &f->calls[i];
    return NULL;
}

/* A second start, an empty id and an id that was settled say nothing. */
static void
on_started (void *ctx, const char *id, const char *name)
{
    struct frames *f = ctx;
    if (! id[0] || find_call (f, id))
        return;
    x_grow (f->calls, f->len, f->cap);
    f->calls[f->len++] = (struct frame_call){ .id = x_strdup (id) };
    streams_tool_started (f->streams, f->task, id, name);
}

static void
frames_show (struct frames *f, struct frame_call *c, uint64_t now_ms)
{
    c->shown_bytes = c->bytes;
    c->shown_ms = now_ms;
    streams_tool_progress (f->streams, f->task, c->id, c->bytes);
}

static void
on_input_bytes (void *ctx, const char *id, uint64_t bytes)
{
    struct frames *f = ctx;
    struct frame_call *c = find_call (f, id);
    if (! c || c->is_settled || bytes <= c->bytes)
        return;
    c->bytes = bytes;
    uint64_t now_ms = clock_monotonic_ms ();
    if (! c->shown_bytes || now_ms - c->shown_ms >= PROGRESS_EVERY_MS)
        frames_show (f, c, now_ms);
}

void
frames_begin (struct frames *f, struct session *s, const struct task *task, bool is_driver)
{
    *f = (struct frames){ .streams = registry_streams (s->registry), .task = task };
    f->host = (struct stream_host){ f, on_chunk, on_thinking, is_driver ? on_started : NULL,
                                    is_driver ? on_input_bytes : NULL };
}

void
frames_settle (struct frames *f)
{
    uint64_t now_ms = clock_monotonic_ms ();
    for (size_t i = 0; i < f->len; i++) {
        struct frame_call *c = &f->calls[i];
        if (! c->is_settled && c->bytes > c->shown_bytes)
            frames_show (f, c, now_ms);
        c->is_settled = true;
    }
    if (f->has_text)
        streams_text (f->streams, f->task, "", 0, true);
}

void
frames_clear (struct frames *f)
{
    for (size_t i = 0; i < f->len; i++)
        free (f->calls[i].id);
    free (f->calls);
    *f = (struct frames){ 0 };
}
