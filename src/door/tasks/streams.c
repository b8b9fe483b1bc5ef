/* SPDX-License-Identifier: Apache-2.0 */
#include "door/tasks/streams.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/condition.h"
#include "base/json.h"
#include "door/card/card.h"
#include "door/tasks/task_json.h"
#include "door/tasks/task_state.h"
#include "door/tasks/tasks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

struct event {
    atomic_uint refs;
    uint64_t id;
    char *task_id;
    char *plain;           /* NULL: a murmur frame */
    char *extended;        /* NULL: the same as plain */
    enum task_state state; /* of a status; TASK_WORKING for everything else */
    bool is_status;
};

struct watcher {
    struct streams *streams;
    void (*wake) (void *ctx);
    void *ctx;
    struct event *events[STREAMS_LIVE_EVENTS]; /* a ring */
    size_t first, len;
    uint64_t lost_through; /* id of the newest event lost since the last look; 0: none was */
    struct watcher *next, **link;
};

struct streams {
    pthread_mutex_t lock;
    bool is_threaded, is_closed;
    uint64_t next_id;
    struct event *replay[STREAMS_REPLAY_EVENTS]; /* a ring: the last ones */
    size_t first, len;
    struct watcher *watchers;
    pthread_cond_t has_watcher;
};

/* --- events --- */

static struct event *
event_ref (struct event *e)
{
    atomic_fetch_add (&e->refs, 1);
    return e;
}

void
event_unref (struct event *e)
{
    if (! e || atomic_fetch_sub (&e->refs, 1) != 1)
        return;
    free (e->task_id);
    free (e->plain);
    free (e->extended);
    free (e);
}

uint64_t
event_id (const struct event *e)
{
    return e->id;
}

const char *
event_text (const struct event *e, bool is_extended)
{
    return is_extended && e->extended ? e->extended : e->plain;
}

bool
event_is_status (const struct event *e)
{
    return e->is_status;
}

const char *
event_task_id (const struct event *e)
{
    return e->task_id;
}

enum task_state
event_state (const struct event *e)
{
    return e->state;
}

/* --- making --- */

struct streams *
streams_new (bool is_threaded)
{
    struct streams *s = x_new0 (struct streams);
    s->is_threaded = is_threaded;
    s->next_id = 1;
    pthread_mutex_init (&s->lock, NULL);
    condition_init (&s->has_watcher);
    return s;
}

void
streams_free (struct streams *s)
{
    for (size_t i = 0; i < s->len; i++)
        event_unref (s->replay[(s->first + i) % STREAMS_REPLAY_EVENTS]);
    pthread_cond_destroy (&s->has_watcher);
    pthread_mutex_destroy (&s->lock);
    free (s);
}

bool
streams_is_threaded (const struct streams *s)
{
    return s->is_threaded;
}

/* --- writing, under the lock --- */

static void
keep_for_replay (struct streams *s, struct event *e)
{
    if (s->len == STREAMS_REPLAY_EVENTS) {
        event_unref (s->replay[s->first]);
        s->first = (s->first + 1) % STREAMS_REPLAY_EVENTS;
        s->len--;
    }
    s->replay[(s->first + s->len++) % STREAMS_REPLAY_EVENTS] = event_ref (e);
}

static void
hand_out (struct watcher *w, struct event *e)
{
    if (w->len == STREAMS_LIVE_EVENTS) {
        w->lost_through = w->events[w->first]->id;
        event_unref (w->events[w->first]);
        w->first = (w->first + 1) % STREAMS_LIVE_EVENTS;
        w->len--;
    }
    w->events[(w->first + w->len++) % STREAMS_LIVE_EVENTS] = event_ref (e);
    w->wake (w->ctx);
}

/* Takes the event over: number, buffer, broadcast. */
static void
emit (struct streams *s, struct event *e)
{
    e->id = s->next_id++;
    keep_for_replay (s, e);
    for (struct watcher *w = s->watchers; w; w = w->next)
        hand_out (w, e);
    event_unref (e);
}

static struct event *
new_event (const char *task_id)
{
    struct event *e = x_new0 (struct event);
    atomic_init (&e->refs, 1);
    e->task_id = x_strdup (task_id);
    e->state = TASK_WORKING;
    return e;
}

char *
streams_update_text (const char *task_id, const char *context_id, const char *member,
                     const char *key, json_t *value, bool is_last_chunk, json_t *metadata)
{
    json_t *inner = json_object ();
    json_set_string (inner, "taskId", task_id);
    json_set_string (inner, "contextId", context_id);
    json_object_set_new (inner, key, value);
    if (is_last_chunk)
        json_set_bool (inner, "lastChunk", true);
    if (metadata)
        json_object_set_new (inner, "metadata", metadata);
    _cleanup_json_ json_t *outer = json_object ();
    json_object_set_new (outer, member, inner);
    return json_text (outer, JSON_TEXT_ORDERED);
}

static char *
update_text (const struct task *task, const char *member, const char *key, json_t *value,
             bool is_last_chunk, json_t *metadata)
{
    return streams_update_text (task->id, task->context_id, member, key, value, is_last_chunk,
                                metadata);
}

static struct event *
status_event (const struct task *task, json_t *status, enum task_state state, json_t *metadata)
{
    struct event *e = new_event (task->id);
    e->state = state;
    e->is_status = true;
    e->plain = update_text (task, "statusUpdate", "status", status, false, metadata);
    return e;
}

void
streams_status (struct streams *s, const struct task *task, json_t *status, enum task_state state)
{
    struct event *e = status_event (task, status, state, NULL);
    pthread_mutex_lock (&s->lock);
    emit (s, e);
    pthread_mutex_unlock (&s->lock);
}

void
streams_end (struct streams *s, const struct task *task, json_t *artifact, json_t *status,
             enum task_state state, json_t *metadata)
{
    struct event *response = NULL;
    if (artifact) {
        response = new_event (task->id);
        response->plain = update_text (task, "artifactUpdate", "artifact", artifact, true, NULL);
    }
    struct event *end = status_event (task, status, state, metadata);
    pthread_mutex_lock (&s->lock);
    if (response)
        emit (s, response);
    emit (s, end);
    pthread_mutex_unlock (&s->lock);
}

/* --- what the task loop writes --- */

static json_t *
working_status (const struct task *task, const char *text)
{
    const struct task_view view = { .id = task->id,
                                    .context_id = task->context_id,
                                    .state = TASK_WORKING,
                                    .timestamp_ms = clock_unix_ms () };
    return text ? task_view_said (&view, text) : task_view_status (&view);
}

json_t *
streams_metadata (json_t *value)
{
    json_t *metadata = json_object ();
    json_object_set_new (metadata, CARD_STREAM_URI, value);
    return metadata;
}

void
streams_working (struct streams *s, const struct task *task, const char *text, unsigned reopen)
{
    json_t *status = working_status (task, text);
    struct event *e = new_event (task->id);
    e->is_status = true;
    e->plain = update_text (task, "statusUpdate", "status", json_incref (status), false, NULL);
    if (reopen) {
        json_t *note = json_object ();
        json_set_u64 (note, "reopen", reopen);
        e->extended = update_text (task, "statusUpdate", "status", json_incref (status), false,
                                   streams_metadata (note));
    }
    json_decref (status);
    pthread_mutex_lock (&s->lock);
    emit (s, e);
    pthread_mutex_unlock (&s->lock);
}

static json_t *
frame_new (const char *name)
{
    json_t *frame = json_object ();
    json_set_string (frame, "frame", name);
    return frame;
}

/* A murmur frame: for clients that activated the stream extension only. Takes the frame over. */
static void
emit_frame (struct streams *s, const struct task *task, json_t *frame)
{
    struct event *e = new_event (task->id);
    e->extended = update_text (task, "statusUpdate", "status", working_status (task, NULL), false,
                               streams_metadata (frame));
    pthread_mutex_lock (&s->lock);
    emit (s, e);
    pthread_mutex_unlock (&s->lock);
}

void
streams_text (struct streams *s, const struct task *task, const char *text, size_t len,
              bool is_final)
{
    json_t *frame = frame_new ("text");
    json_set_string_n (frame, "text", text, len);
    json_set_bool (frame, "final", is_final);
    emit_frame (s, task, frame);
}

void
streams_thinking (struct streams *s, const struct task *task, const char *text, size_t len)
{
    json_t *frame = frame_new ("thinking");
    json_set_string_n (frame, "text", text, len);
    json_set_bool (frame, "final", false);
    emit_frame (s, task, frame);
}

void
streams_tool_started (struct streams *s, const struct task *task, const char *call_id,
                      const char *tool_name)
{
    json_t *frame = frame_new ("tool-call-started");
    json_set_string (frame, "toolCallId", call_id);
    json_set_string (frame, "toolName", tool_name);
    emit_frame (s, task, frame);
}

void
streams_tool_progress (struct streams *s, const struct task *task, const char *call_id,
                       uint64_t input_bytes)
{
    json_t *frame = frame_new ("tool-call-progress");
    json_set_string (frame, "toolCallId", call_id);
    json_set_u64 (frame, "inputBytes", input_bytes);
    emit_frame (s, task, frame);
}

void
streams_artifact (struct streams *s, const struct task *task, const struct stream_artifact *a)
{
    json_t *frame = frame_new ("artifact");
    json_set_string (frame, "toolName", a->tool_name);
    json_set_string (frame, "content", a->content);
    json_set_string (frame, "fenceSource", a->fence_source);
    json_set_string (frame, "toolCallId", a->call_id);
    json_set_bool (frame, "isError", a->is_error);
    json_object_set_new (frame, "durationMs",
                         a->has_duration ? json_integer ((json_int_t)a->duration_ms)
                                         : json_null ());
    json_object_set_new (frame, "exitCode",
                         a->has_exit_code ? json_integer (a->exit_code) : json_null ());
    json_set_bool (frame, "truncated", a->truncated);
    emit_frame (s, task, frame);
}

/* --- reading --- */

struct watcher *
watcher_new (struct streams *s, void (*wake) (void *ctx), void *ctx, uint64_t *last_id)
{
    struct watcher *w = x_new0 (struct watcher);
    w->streams = s;
    w->wake = wake;
    w->ctx = ctx;
    pthread_mutex_lock (&s->lock);
    *last_id = s->next_id - 1;
    w->next = s->watchers;
    w->link = &s->watchers;
    if (w->next)
        w->next->link = &w->next;
    s->watchers = w;
    pthread_cond_broadcast (&s->has_watcher);
    pthread_mutex_unlock (&s->lock);
    return w;
}

void
streams_await_watcher (struct streams *s, unsigned timeout_ms)
{
    uint64_t at_ms = clock_monotonic_ms () + timeout_ms;
    struct timespec at = { (time_t)(at_ms / 1000), (long)(at_ms % 1000) * 1000000 };
    pthread_mutex_lock (&s->lock);
    while (! s->watchers && pthread_cond_timedwait (&s->has_watcher, &s->lock, &at) != ETIMEDOUT)
        ;
    pthread_mutex_unlock (&s->lock);
}

void
watcher_free (struct watcher *w)
{
    if (! w)
        return;
    struct streams *s = w->streams;
    pthread_mutex_lock (&s->lock);
    *w->link = w->next;
    if (w->next)
        w->next->link = w->link;
    pthread_mutex_unlock (&s->lock);
    for (size_t i = 0; i < w->len; i++)
        event_unref (w->events[(w->first + i) % STREAMS_LIVE_EVENTS]);
    free (w);
}

enum watcher_next
watcher_take (struct watcher *w, struct event **event, uint64_t *lost_through)
{
    enum watcher_next next = WATCHER_EMPTY;
    pthread_mutex_lock (&w->streams->lock);
    if (w->lost_through) {
        *lost_through = w->lost_through;
        w->lost_through = 0;
        next = WATCHER_LAGGED;
    } else if (w->len) {
        *event = w->events[w->first];
        w->first = (w->first + 1) % STREAMS_LIVE_EVENTS;
        w->len--;
        next = WATCHER_EVENT;
    } else if (w->streams->is_closed)
        next = WATCHER_CLOSED;
    pthread_mutex_unlock (&w->streams->lock);
    return next;
}

void
streams_replay (struct streams *s, uint64_t cursor, const char *task_id, struct replay *out)
{
    *out = (struct replay){ 0 };
    pthread_mutex_lock (&s->lock);
    uint64_t oldest = s->len ? s->replay[s->first]->id : 0;
    if (s->len) {
        /* Older than what is kept, or an id this session never gave out. */
        out->has_gap = cursor + 1 < oldest || cursor >= s->next_id;
        out->first_available = oldest;
        if (out->has_gap)
            cursor = 0;
    }
    out->events = x_new_array (struct event *, s->len + 1);
    for (size_t i = 0; i < s->len; i++) {
        struct event *e = s->replay[(s->first + i) % STREAMS_REPLAY_EVENTS];
        if (e->id > cursor && (! task_id || strcmp (task_id, e->task_id) == 0))
            out->events[out->len++] = event_ref (e);
    }
    pthread_mutex_unlock (&s->lock);
}

void
replay_free (struct replay *r)
{
    for (size_t i = 0; i < r->len; i++)
        event_unref (r->events[i]);
    free (r->events);
    *r = (struct replay){ 0 };
}
