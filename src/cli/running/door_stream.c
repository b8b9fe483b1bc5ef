/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/running/door_stream.h"

#include "base/alloc.h"
#include "client/door_client.h"
#include "net/sse.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MOST_WAITING  (1024 * 1024) /* bytes not yet shown; then the door has to wait */
#define REFUSAL_LIMIT (64 * 1024)
#define SILENCE_MS    (60 * 1000) /* four heartbeats */

/* What the network thread and this one share. */
struct feed {
    pthread_mutex_t lock;
    int wake_fd; /* an eventfd: there are bytes, or it is over */
    struct buf waiting;
    bool is_paused, is_over;
    int status;
    char *failure; /* what ended it, in words */
};

/* --- the network thread's side --- */

static void
feed_wake (struct feed *f)
{
    uint64_t one = 1;
    (void)! write (f->wake_fd, &one, sizeof (one));
}

static void
on_head (void *ctx, int status, const struct http_header *headers, size_t header_count)
{
    struct feed *f = ctx;
    (void)headers;
    (void)header_count;
    pthread_mutex_lock (&f->lock);
    f->status = status;
    pthread_mutex_unlock (&f->lock);
}

static bool
on_body (void *ctx, const void *data, size_t len)
{
    struct feed *f = ctx;
    pthread_mutex_lock (&f->lock);
    bool has_room = f->waiting.len < MOST_WAITING;
    f->is_paused = ! has_room;
    if (has_room)
        buf_append (&f->waiting, data, len);
    pthread_mutex_unlock (&f->lock);
    feed_wake (f);
    return has_room;
}

static void
on_end (void *ctx, enum http_failure failure, const char *detail)
{
    struct feed *f = ctx;
    pthread_mutex_lock (&f->lock);
    f->is_over = true;
    if (failure != HTTP_OK)
        f->failure = x_strdup (detail ? detail : http_failure_text (failure));
    pthread_mutex_unlock (&f->lock);
    feed_wake (f);
}

/* --- events --- */

static bool
on_event (void *ctx, const char *id, const char *data, size_t len)
{
    struct door_stream *s = ctx;
    _cleanup_json_ json_t *response = json_loadb (data, len, 0, NULL);
    const json_t *result = json_object_get (response, "result");
    if (*id) {
        snprintf (s->last_id, sizeof (s->last_id), "%s", id);
        s->events++;
    }
    return ! result || s->event (s->ctx, result);
}

/* Takes what waits and shows it. Returns false when the caller is done. */
static bool
take (struct door_stream *s, struct feed *f, struct http_transfer *transfer)
{
    pthread_mutex_lock (&f->lock);
    struct buf bytes = f->waiting;
    f->waiting = (struct buf){ 0 };
    bool was_paused = f->is_paused, is_stream = f->status == 200;
    f->is_paused = false;
    pthread_mutex_unlock (&f->lock);
    if (was_paused)
        http_transfer_resume (transfer);
    bool goes_on = true;
    bool is_refusal = ! is_stream || s->refusal.len ||
                      (! s->parser.line.len && ! s->events && bytes.len && bytes.data[0] == '{');
    if (bytes.len && is_refusal) {
        if (s->refusal.len + bytes.len < REFUSAL_LIMIT)
            buf_append (&s->refusal, bytes.data, bytes.len);
    } else if (bytes.len) {
        goes_on = sse_feed (&s->parser, bytes.data, bytes.len, on_event, s);
    }
    buf_free (&bytes);
    return goes_on;
}

/* Waits for bytes. False when the reader of stdout has left, or the caller had enough. */
static bool
wait_for_bytes (const struct door_stream *s, const struct feed *f)
{
    struct pollfd fds[] = { { .fd = f->wake_fd, .events = POLLIN },
                            { .fd = STDOUT_FILENO },
                            { .fd = s->woken ? s->woken_fd : -1, .events = POLLIN } };
    while (poll (fds, ARRAY_LEN (fds), -1) < 0)
        if (errno != EINTR)
            return false;
    uint64_t count;
    if (fds[0].revents)
        (void)! read (f->wake_fd, &count, sizeof (count));
    bool is_wanted = ! fds[2].revents || s->woken (s->ctx);
    return is_wanted && ! (fds[1].revents & (POLLERR | POLLHUP | POLLNVAL));
}

/* --- one connection --- */

static struct http_transfer *
subscribe (const struct door_stream *s, struct http_client *client, struct feed *feed)
{
    static const struct http_events events = { .head = on_head, .body = on_body, .end = on_end };
    const struct door_subscription d = { .url = s->url,
                                         .token = s->token,
                                         .method = s->method,
                                         .params = s->params,
                                         .last_id = s->last_id,
                                         .is_extended = s->is_extended,
                                         .connect_timeout_ms = 2000,
                                         .first_byte_timeout_ms = 30000,
                                         .between_bytes_timeout_ms = SILENCE_MS };
    return door_subscribe (client, &d, &events, feed);
}

static enum door_stream_end
refused (const struct door_stream *s, int status, struct mur_error **err)
{
    if (status == 401 || status == 403) {
        mur_fail (err, E_IO_003, "the door at %s refused %s with HTTP %d", s->url, s->method,
                  status);
        mur_hint (err,
                  "its token is taken from the session's record, for --url from MURMUR_DOOR_TOKEN");
        return DOOR_STREAM_REFUSED;
    }
    const char *text = s->refusal.data ? s->refusal.data : "";
    _cleanup_json_ json_t *answer = json_loads (text, 0, NULL);
    const char *message = json_get_string (json_object_get (answer, "error"), "message");
    if (message)
        mur_fail (err, E_IO_003, "the door at %s answered %s with: %s", s->url, s->method, message);
    else
        mur_fail (err, E_IO_003, "what answers at %s is no capsule (HTTP %d)", s->url, status);
    return DOOR_STREAM_REFUSED;
}

enum door_stream_end
door_stream_follow (struct door_stream *s, struct http_client *client, char **why,
                    struct mur_error **err)
{
    struct feed feed = { .lock = PTHREAD_MUTEX_INITIALIZER,
                         .wake_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK) };
    if (feed.wake_fd < 0) {
        mur_fail_errno (err, E_IO_003, "cannot make an event descriptor");
        return DOOR_STREAM_REFUSED;
    }
    struct http_transfer *transfer = subscribe (s, client, &feed);
    bool is_reading = true, is_over = false;
    while (is_reading && ! is_over) {
        bool has_reader = wait_for_bytes (s, &feed);
        pthread_mutex_lock (&feed.lock);
        is_over = feed.is_over;
        pthread_mutex_unlock (&feed.lock);
        is_reading = has_reader && take (s, &feed, transfer);
    }
    http_transfer_release (transfer);
    close (feed.wake_fd);
    buf_free (&feed.waiting);
    sse_parser_free (&s->parser);
    s->parser = (struct sse_parser){ 0 };
    enum door_stream_end end = is_reading ? DOOR_STREAM_BROKEN : DOOR_STREAM_DONE;
    if (end == DOOR_STREAM_BROKEN && (s->refusal.len || (feed.status && feed.status != 200)))
        end = refused (s, feed.status, err);
    else if (end == DOOR_STREAM_BROKEN && ! feed.status)
        end = DOOR_STREAM_UNREACHABLE;
    *why = feed.failure ? feed.failure : x_strdup ("the capsule ended the connection");
    return end;
}

void
door_stream_clear (struct door_stream *s)
{
    buf_free (&s->refusal);
    sse_parser_free (&s->parser);
}
