/* SPDX-License-Identifier: Apache-2.0
 *
 * The session's event sequence: numbered, buffered for replay, and handed to every watcher
 * (spec/door.md 8).
 *
 * Always true: numbering, buffering and handing out happen under one lock, so ids are in order
 * everywhere; writing never waits for a watcher: one that is too slow loses its oldest events and
 * is told how many.
 */
#pragma once

#include "door/tasks/task_state.h"
#include "door/tasks/tasks.h"

#define STREAMS_REPLAY_EVENTS 512
#define STREAMS_LIVE_EVENTS   128

struct streams *streams_new (bool is_threaded);
/* After the door is closed: no watcher is left. */
void streams_free (struct streams *s);

/* --- written by the task loop --- */

/* A non-terminal status of the task: "inference turn 2", "reopened by hook x". <reopen> 0 = no
 * annotation. */
void
streams_working (struct streams *s, const struct task *task, const char *text, unsigned reopen);
void streams_text (struct streams *s, const struct task *task, const char *text, size_t len,
                   bool is_final);
void streams_thinking (struct streams *s, const struct task *task, const char *text, size_t len);
void streams_tool_started (struct streams *s, const struct task *task, const char *call_id,
                           const char *tool_name);
void streams_tool_progress (struct streams *s, const struct task *task, const char *call_id,
                            uint64_t input_bytes);

struct stream_artifact {
    const char *tool_name;
    const char *content;      /* exactly what the model read */
    const char *fence_source; /* NULL: null */
    const char *call_id;      /* NULL: null */
    bool is_error;
    bool has_duration;
    uint64_t duration_ms;
    bool has_exit_code;
    int exit_code;
    bool truncated;
};
void streams_artifact (struct streams *s, const struct task *task,
                       const struct stream_artifact *artifact);

/* --- written by the registry --- */

/* One status of a task, as an object {state, message?, timestamp} (taken over). */
void
streams_status (struct streams *s, const struct task *task, json_t *status, enum task_state state);
/* The end of a task: the response artifact (may be NULL) and the terminal status, with consecutive
 * ids. Both taken over. */
void streams_end (struct streams *s, const struct task *task, json_t *artifact, json_t *status,
                  enum task_state state, json_t *metadata);

/* {"<member>": {"taskId", "contextId", <key>: <value>, ...}} as text: what statusUpdate and
 * artifactUpdate look like. Takes value and metadata (may be NULL) over. Owned. */
char *streams_update_text (const char *task_id, const char *context_id, const char *member,
                           const char *key, json_t *value, bool is_last_chunk, json_t *metadata);
/* {<stream URI>: value}; takes value over. */
json_t *streams_metadata (json_t *value);

/* --- read by the door --- */

struct event; /* one numbered event, reference-counted */
void event_unref (struct event *e);
uint64_t event_id (const struct event *e);
/* The StreamResponse text; NULL: nothing of it is for a plain client. */
const char *event_text (const struct event *e, bool is_extended);
/* The state a status event carries; TASK_WORKING for everything else. */
enum task_state event_state (const struct event *e);
/* True for a status of the task; false for frames and artifacts. */
bool event_is_status (const struct event *e);
const char *event_task_id (const struct event *e); /* borrowed */

struct watcher;

/* Subscribes to the live feed of all tasks; *last_id is the last event before it, 0 for none.
 * <wake> is called under the streams' lock when there is something to take. */
struct watcher *
watcher_new (struct streams *s, void (*wake) (void *ctx), void *ctx, uint64_t *last_id);
void watcher_free (struct watcher *w);
/* Returns once somebody watches, or after that time. */
void streams_await_watcher (struct streams *s, unsigned timeout_ms);
enum watcher_next { WATCHER_EVENT, WATCHER_LAGGED, WATCHER_EMPTY, WATCHER_CLOSED };
/* The next event (owned); or that events up to one were lost before it; or that there is none yet,
 * or that there will be none. */
enum watcher_next watcher_take (struct watcher *w, struct event **event, uint64_t *lost_through);

struct replay {
    struct event **events; /* owned references */
    size_t len;
    bool has_gap;
    uint64_t first_available;
};
/* Events above <cursor>, of one task or all (NULL); the cursor rules of door.md 8.5. */
void streams_replay (struct streams *s, uint64_t cursor, const char *task_id, struct replay *out);
void replay_free (struct replay *r);
bool streams_is_threaded (const struct streams *s);
