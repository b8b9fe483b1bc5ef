/* SPDX-License-Identifier: Apache-2.0 */
#include "net/server/http_exchange.h"

#include "base/alloc.h"
#include "net/server/http_server_impl.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define SMALL_ANSWER_BYTES ((size_t)64 << 10) /* the number of connections bounds these */

const char *
http_exchange_method (const struct http_exchange *x)
{
    return x->asked.method;
}

const char *
http_exchange_target (const struct http_exchange *x)
{
    return x->asked.target;
}

size_t
http_exchange_headers (const struct http_exchange *x, const struct http_header **headers)
{
    *headers = x->asked.headers;
    return x->asked.header_count;
}

const char *
http_exchange_header (const struct http_exchange *x, const char *name, size_t *count)
{
    const char *first = NULL;
    size_t found = 0;
    for (size_t i = 0; i < x->asked.header_count; i++)
        if (strcasecmp (x->asked.headers[i].name, name) == 0 && found++ == 0)
            first = x->asked.headers[i].value;
    if (count)
        *count = found;
    return first;
}

uint64_t
http_exchange_content_length (const struct http_exchange *x)
{
    return x->asked.content_length;
}

const char *
http_exchange_body (const struct http_exchange *x, size_t *len)
{
    *len = x->asked.body.len;
    return x->asked.body.data ? x->asked.body.data : "";
}

void
http_exchange_keep_secret (struct http_exchange *x, size_t len)
{
    x->is_secret = true;
    (void)buf_reserve (&x->asked.body, len + 1);
}

const struct sockaddr *
http_exchange_peer (const struct http_exchange *x)
{
    return (const struct sockaddr *)&x->connection->peer;
}

void
http_server_wake (struct http_server *s)
{
    uint64_t one = 1;
    (void)! write (s->event_fd, &one, sizeof one);
}

/* Hands the finished answer to the loop when another thread made it. */
static void
publish (struct http_exchange *x)
{
    struct http_server *s = x->server;
    pthread_mutex_lock (&s->lock);
    x->answer.is_there = true;
    bool is_first = x->is_held && ! s->answered;
    if (x->is_held) {
        x->is_queued = true;
        x->next_queued = s->answered;
        s->answered = x;
    }
    pthread_mutex_unlock (&s->lock);
    if (is_first) /* else a wake is on its way already */
        http_server_wake (s);
}

static void
set_lines (struct http_exchange *x, int status, const struct http_header *headers,
           size_t header_count)
{
    x->answer.status = status;
    for (size_t i = 0; i < header_count; i++) {
        strv_push (&x->answer.lines, headers[i].name);
        strv_take (&x->answer.lines, x_strndup (headers[i].value, headers[i].value_len));
    }
}

void
http_reply_take (struct http_exchange *x, int status, const struct http_header *headers,
                 size_t header_count, char *body, size_t len)
{
    if (! http_reserve_answer (x, len)) {
        free (body);
        http_refuse (x, 503, NULL, 0, NULL, 0);
        return;
    }
    set_lines (x, status, headers, header_count);
    x->answer.text = body;
    x->answer.len = len;
    publish (x);
}

void
http_reply (struct http_exchange *x, int status, const struct http_header *headers,
            size_t header_count, const void *body, size_t len)
{
    http_reply_take (x, status, headers, header_count, x_memdup (len ? body : "", len ? len : 1),
                     len);
}

void
http_refuse (struct http_exchange *x, int status, const struct http_header *headers,
             size_t header_count, const void *body, size_t len)
{
    x->answer.closes = true;
    http_reply (x, status, headers, header_count, body, len);
}

static bool
has_room_for_long (struct http_exchange *x)
{
    const struct http_server *s = x->server;
    if (s->own.long_lived + s->limits.reserved < s->limits.connections)
        return true;
    http_refuse (x, 503, NULL, 0, NULL, 0);
    return false;
}

bool
http_hold (struct http_exchange *x)
{
    if (x->is_held)
        return true;
    if (! has_room_for_long (x))
        return false;
    x->is_held = x->is_long_lived = true;
    x->server->own.long_lived++;
    return true;
}

void
http_hold_briefly (struct http_exchange *x)
{
    x->is_held = true;
}

struct http_stream *
http_reply_stream (struct http_exchange *x, int status, const struct http_header *headers,
                   size_t header_count, const struct http_stream_source *source, void *ctx)
{
    if (! http_hold (x))
        return NULL;
    struct http_server *s = x->server;
    struct http_stream *stream = x_new0 (struct http_stream);
    stream->server = s;
    stream->mhd = x->mhd;
    stream->fd = x->connection->fd;
    stream->source = source;
    stream->ctx = ctx;
    set_lines (x, status, headers, header_count);
    x->answer.stream = stream;
    publish (x);
    return stream;
}

void
http_stream_wake (struct http_stream *stream)
{
    struct http_server *s = stream->server;
    pthread_mutex_lock (&s->lock);
    bool is_first = ! s->woken;
    if (! stream->is_queued) {
        stream->is_queued = true;
        stream->next_queued = s->woken;
        s->woken = stream;
    }
    pthread_mutex_unlock (&s->lock);
    if (is_first) /* else a wake is on its way already */
        http_server_wake (s);
}

bool
http_reserve_answer (struct http_exchange *x, size_t len)
{
    struct http_server *s = x->server;
    if (len <= SMALL_ANSWER_BYTES || x->answer.reserved >= len)
        return true;
    pthread_mutex_lock (&s->lock);
    bool fits = ! s->held_bytes.answers || s->held_bytes.answers + len <= s->limits.answer_bytes;
    if (fits) {
        x->answer.reserved = len;
        s->held_bytes.answers += len;
    }
    pthread_mutex_unlock (&s->lock);
    return fits;
}

bool
http_stream_is_gone (const struct http_stream *s)
{
    char byte;
    ssize_t n = recv (s->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}
