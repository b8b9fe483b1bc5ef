/* SPDX-License-Identifier: Apache-2.0 */
#include "door/event_stream.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "door/card/card.h"
#include "door/envelope.h"
#include "door/tasks/registry.h"
#include "door/tasks/task_json.h"
#include "door/tasks/task_state.h"
#include "door/tasks/tasks.h"
#include "net/server/http_exchange.h"
#include "net/sse.h"

#include <stdatomic.h>
#include <string.h>

#define HEARTBEAT_MS  15000
#define TICK_MS       (HEARTBEAT_MS / 3)
#define TICK_EARLY_MS 1000 /* a tick that comes a little early still counts */

struct event_stream {
    struct registry *registry;
    enum event_stream_kind kind;
    char *id;
    bool is_extended;
    char *task_id, *context_id; /* of a task stream */
    struct watcher *watcher;
    _Atomic (struct http_stream *) stream;

    struct buf pending;
    size_t pending_at;
    struct replay replay;
    size_t replayed;
    uint64_t seen;        /* the highest id written or passed by */
    uint64_t before_live; /* the last id that does not come live */
    enum task_state last_state;
    bool has_lagged, is_over;
    uint64_t heartbeat_ms;
};

static void
on_wake (void *ctx)
{
    struct event_stream *e = ctx;
    struct http_stream *stream = atomic_load (&e->stream);
    if (stream) /* before that, the first read finds everything */
        http_stream_wake (stream);
}

struct event_stream *
event_stream_new (struct registry *r, enum event_stream_kind kind, const char *id, bool is_extended)
{
    struct event_stream *e = x_new0 (struct event_stream);
    e->registry = r;
    e->kind = kind;
    e->id = x_strdup (id);
    e->is_extended = is_extended;
    e->last_state = TASK_SUBMITTED;
    e->heartbeat_ms = clock_monotonic_ms ();
    e->watcher = watcher_new (registry_streams (r), on_wake, e, &e->before_live);
    return e;
}

void
event_stream_free (struct event_stream *e)
{
    watcher_free (e->watcher);
    replay_free (&e->replay);
    buf_free (&e->pending);
    free (e->id);
    free (e->task_id);
    free (e->context_id);
    free (e);
}

/* --- what is written --- */

static void
append (struct event_stream *e, uint64_t id, const char *response)
{
    _cleanup_free_ char *json = envelope_result (e->id, response);
    sse_append (&e->pending, id, json, strlen (json));
}

static void
append_member (struct event_stream *e, const char *member, json_t *value)
{
    _cleanup_json_ json_t *response = json_object ();
    json_object_set_new (response, member, value);
    _cleanup_free_ char *text = json_text (response, JSON_TEXT_ORDERED);
    append (e, 0, text);
}

/* A frame about the stream itself: carried by the task's status, or by a message on a watch. */
static void
append_frame (struct event_stream *e, json_t *frame)
{
    if (e->kind != STREAM_WATCH) {
        json_t *status = json_object ();
        json_set_string (status, "state", task_state_wire (e->last_state));
        char timestamp[25];
        clock_rfc3339 (clock_unix_ms (), timestamp);
        json_set_string (status, "timestamp", timestamp);
        _cleanup_free_ char *text =
            streams_update_text (e->task_id, e->context_id, "statusUpdate", "status", status, false,
                                 streams_metadata (frame));
        append (e, 0, text);
        return;
    }
    json_t *message =
        agent_message_json (id_new ("msg_").text, NULL, NULL, json_get_string (frame, "frame"));
    json_object_set_new (message, "metadata", streams_metadata (frame));
    append_member (e, "message", message);
}

static json_t *
frame_new (const char *name)
{
    json_t *frame = json_object ();
    json_set_string (frame, "frame", name);
    return frame;
}

void
event_stream_open_with_task (struct event_stream *e, json_t *task, enum task_state state)
{
    e->task_id = x_strdup (json_get_string (task, "id"));
    e->context_id = x_strdup (json_get_string (task, "contextId"));
    e->last_state = state;
    append_member (e, "task", task);
}

void
event_stream_only_task (struct event_stream *e, json_t *task)
{
    append_member (e, "task", task);
    e->is_over = true;
}

void
event_stream_replay (struct event_stream *e, bool has_cursor, uint64_t cursor)
{
    struct streams *streams = registry_streams (e->registry);
    if (e->kind == STREAM_WATCH) {
        json_t *ack = frame_new ("connection-ack");
        json_set_string (ack, "role", "observer");
        json_set_string (ack, "conversationMode",
                         streams_is_threaded (streams) ? "threaded" : "stateless");
        append_frame (e, ack);
    } else if (! has_cursor)
        return;
    streams_replay (streams, has_cursor ? cursor : 0, e->task_id, &e->replay);
    if (e->replay.has_gap && (e->is_extended || e->kind == STREAM_WATCH)) {
        json_t *gap = frame_new ("gap");
        json_set_u64 (gap, "firstAvailableId", e->replay.first_available);
        append_frame (e, gap);
    }
}

/* One numbered event; may end the stream. */
static void
append_event (struct event_stream *e, const struct event *event, bool is_live)
{
    if (event_id (event) <= e->seen)
        return;
    e->seen = event_id (event);
    if (e->task_id && strcmp (event_task_id (event), e->task_id) != 0)
        return;
    const char *text = event_text (event, e->is_extended || e->kind == STREAM_WATCH);
    if (! text)
        return;
    append (e, event_id (event), text);
    if (! event_is_status (event))
        return;
    e->last_state = event_state (event);
    bool ends_send = e->kind == STREAM_SEND && is_live && e->last_state == TASK_INPUT_REQUIRED;
    e->is_over = e->kind != STREAM_WATCH && (task_state_is_terminal (e->last_state) || ends_send);
}

/* After a loss the ending itself may have been lost: it is read from the registry with each
 * heartbeat. */
static void
look_for_ending (struct event_stream *e)
{
    static const struct caller everyone = { .credential = "operator" };
    bool is_settled = false;
    enum task_state state;
    _cleanup_json_ json_t *task =
        registry_task_json (e->registry, &everyone, e->task_id, &is_settled, &state);
    if (! task || ! is_settled || (state == TASK_INPUT_REQUIRED && e->kind != STREAM_SEND))
        return;
    json_t *artifact = json_array_get (json_object_get (task, "artifacts"), 0);
    if (artifact && state == TASK_COMPLETED) {
        _cleanup_free_ char *text =
            streams_update_text (e->task_id, e->context_id, "artifactUpdate", "artifact",
                                 json_incref (artifact), true, NULL);
        append (e, 0, text);
    }
    _cleanup_free_ char *text =
        streams_update_text (e->task_id, e->context_id, "statusUpdate", "status",
                             json_incref (json_object_get (task, "status")), false, NULL);
    append (e, 0, text);
    e->is_over = true;
}

static void
heartbeat (struct event_stream *e)
{
    uint64_t now = clock_monotonic_ms ();
    if (now + TICK_EARLY_MS < e->heartbeat_ms + HEARTBEAT_MS)
        return;
    e->heartbeat_ms = now;
    buf_puts (&e->pending, SSE_HEARTBEAT);
    if (e->has_lagged && e->task_id)
        look_for_ending (e);
}

/* Ids are consecutive and every one passes here, so what is not seen up to there is lost: what the
 * replay brought is not counted again. */
static void
note_lag (struct event_stream *e, uint64_t lost_through)
{
    if (lost_through <= e->seen)
        return;
    uint64_t missed = lost_through - e->seen;
    e->seen = lost_through;
    e->has_lagged = true;
    if (! e->is_extended && e->kind != STREAM_WATCH)
        return;
    json_t *frame = frame_new ("lagged");
    json_set_u64 (frame, "missed", missed);
    append_frame (e, frame);
}

/* Takes up what is next; false when there is nothing now. */
static bool
take_next (struct event_stream *e)
{
    if (e->replayed < e->replay.len) {
        append_event (e, e->replay.events[e->replayed++], false);
        return true;
    }
    if (e->seen < e->before_live)
        e->seen = e->before_live;
    struct event *event = NULL;
    uint64_t lost_through = 0;
    switch (watcher_take (e->watcher, &event, &lost_through)) {
    case WATCHER_EVENT:
        append_event (e, event, true);
        event_unref (event);
        return true;
    case WATCHER_LAGGED:
        note_lag (e, lost_through);
        return true;
    case WATCHER_CLOSED:
        if (e->kind == STREAM_WATCH)
            append_frame (e, frame_new ("capsule-closed"));
        e->is_over = true;
        return true;
    case WATCHER_EMPTY:
        break;
    }
    return false;
}

static ssize_t
on_read (void *ctx, char *out, size_t cap)
{
    struct event_stream *e = ctx;
    heartbeat (e);
    while (e->pending.len - e->pending_at < cap && ! e->is_over && take_next (e))
        ;
    size_t len = e->pending.len - e->pending_at;
    if (len == 0)
        return e->is_over ? HTTP_STREAM_END : HTTP_STREAM_WAIT;
    size_t n = len < cap ? len : cap;
    memcpy (out, e->pending.data + e->pending_at, n);
    e->pending_at += n;
    if (e->pending_at == e->pending.len) {
        buf_free (&e->pending); /* an idle stream keeps no buffer */
        e->pending_at = 0;
    }
    return (ssize_t)n;
}

static void
on_closed (void *ctx)
{
    event_stream_free (ctx);
}

static const struct http_stream_source source = { .read = on_read,
                                                  .tick_ms = TICK_MS,
                                                  .closed = on_closed };

void
event_stream_start (struct event_stream *e, struct http_exchange *x, const char *extensions)
{
    struct http_header headers[3] = { { "content-type", "text/event-stream", 17 },
                                      { "cache-control", "no-cache", 8 } };
    size_t count = 2;
    if (extensions)
        headers[count++] =
            (struct http_header){ "A2A-Extensions", extensions, strlen (extensions) };
    struct http_stream *stream = http_reply_stream (x, 200, headers, count, &source, e);
    if (stream)
        atomic_store (&e->stream, stream);
    else
        event_stream_free (e);
}
