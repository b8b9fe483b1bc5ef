/* SPDX-License-Identifier: Apache-2.0
 *
 * One open stream of the door: opening event, replay, live events, heartbeats, and when it ends
 * (spec/door.md 8.5).
 *
 * The watcher is made before anything is routed or read, so that nothing falls between.
 */
#pragma once

#include "door/tasks/streams.h"
#include "net/server/http_server.h"

enum event_stream_kind {
    STREAM_SEND,      /* SendStreamingMessage: ends on a terminal status or a live input-required */
    STREAM_SUBSCRIBE, /* ends on a terminal status */
    STREAM_WATCH,     /* every task; ends with the session */
};

struct event_stream;

/* Subscribes to one task, or to all (NULL). <id> is the request's id as JSON text, copied. */
struct event_stream *event_stream_new (struct registry *r, enum event_stream_kind kind,
                                       const char *id, bool is_extended);
void event_stream_free (struct event_stream *e);
/* The task it is about, and the object it opens with (taken over). */
void event_stream_open_with_task (struct event_stream *e, json_t *task, enum task_state state);
/* A stream of nothing but this task object (a rejected new task). */
void event_stream_only_task (struct event_stream *e, json_t *task);
/* Takes up the replay: events above the cursor. Without one a watch replays from 0 and the others
 * not at all. */
void event_stream_replay (struct event_stream *e, bool has_cursor, uint64_t cursor);
/* Answers with it and hands it over to the server. */
void event_stream_start (struct event_stream *e, struct http_exchange *x, const char *extensions);
