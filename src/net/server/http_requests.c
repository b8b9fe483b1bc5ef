/* SPDX-License-Identifier: Apache-2.0 */
#include "net/server/http_requests.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "net/server/http_exchange.h"
#include "net/server/http_waiting.h"

#include <fcntl.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define SMALL_BODY_BYTES   ((size_t)64 << 10) /* so much of each body is always taken */
#define STREAM_BLOCK_BYTES 4096
#define POOL_SLACK_BYTES   ((size_t)16 << 10) /* what parsing needs beside the bytes of a head */

/* --- connections --- */

static struct connection *
connection_of (struct MHD_Connection *mhd)
{
    return MHD_get_connection_info (mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static void
on_connection (void *ctx, struct MHD_Connection *mhd, void **socket_context,
               enum MHD_ConnectionNotificationCode what)
{
    struct http_server *s = ctx;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        struct connection *c = x_new0 (struct connection);
        c->server = s;
        c->fd = MHD_get_connection_info (mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        const struct sockaddr *peer =
            MHD_get_connection_info (mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
        if (peer && peer->sa_family == AF_INET)
            memcpy (&c->peer, peer, sizeof (struct sockaddr_in));
        else if (peer && peer->sa_family == AF_INET6)
            memcpy (&c->peer, peer, sizeof (struct sockaddr_in6));
        *socket_context = c;
        s->own.connections++;
        http_line_enter (c, &s->own.waiting);
        http_watch_hang_up (c);
        return;
    }
    struct connection *c = *socket_context;
    if (! c)
        return;
    http_connection_forget (c);
    if (c->drains)
        http_drain_begin (s, fcntl (c->fd, F_DUPFD_CLOEXEC, 3));
    free (c);
}

/* --- exchanges --- */

static void *
on_request_line (void *ctx, const char *target, struct MHD_Connection *mhd)
{
    struct http_exchange *x = x_new0 (struct http_exchange);
    x->server = ctx;
    x->mhd = mhd;
    x->asked.target = x_strdup (target);
    return x;
}

/* The source first: after `closed` nobody wakes the stream any more, and it can leave the queue for
 * good. */
static void
stream_forget (struct http_stream *stream)
{
    struct http_server *s = stream->server;
    stream->source->closed (stream->ctx);
    pthread_mutex_lock (&s->lock);
    for (struct http_stream **at = &s->woken; *at; at = &(*at)->next_queued)
        if (*at == stream) {
            *at = stream->next_queued;
            break;
        }
    pthread_mutex_unlock (&s->lock);
    if (stream->link)
        *stream->link = stream->next;
    if (stream->next)
        stream->next->link = stream->link;
    free (stream);
}

static void
unqueue (struct http_exchange *x)
{
    struct http_server *s = x->server;
    pthread_mutex_lock (&s->lock);
    for (struct http_exchange **at = &s->answered; x->is_queued && *at; at = &(*at)->next_queued)
        if (*at == x) {
            *at = x->next_queued;
            break;
        }
    pthread_mutex_unlock (&s->lock);
}

static void
release_answer (struct http_exchange *x)
{
    struct http_server *s = x->server;
    pthread_mutex_lock (&s->lock);
    s->held_bytes.answers -= x->answer.reserved;
    pthread_mutex_unlock (&s->lock);
}

/* libmicrohttpd has no answer for it any more. */
static void
answer_truncated (struct http_exchange *x)
{
    struct http_server *s = x->server;
    _cleanup_free_ char *answer = s->handler->truncated ? s->handler->truncated (s->ctx, x) : NULL;
    if (answer)
        (void)! send (x->connection->fd, answer, strlen (answer), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void
on_completed (void *ctx, struct MHD_Connection *mhd, void **request_context,
              enum MHD_RequestTerminationCode how)
{
    (void)how;
    struct http_server *s = ctx;
    struct http_exchange *x = *request_context;
    struct connection *c = connection_of (mhd);
    *request_context = NULL;
    if (c && ! s->own.is_ending)
        http_line_enter (c, &s->own.waiting);
    else if (c)
        shutdown (c->fd, SHUT_RDWR);
    if (! x)
        return;
    if (c && x->asked.has_head && ! x->is_seen && ! x->answer.is_there && ! x->asked.drops_body)
        answer_truncated (x);
    if (x->is_long_lived)
        s->own.long_lived--;
    if (x->is_held)
        unqueue (x);
    release_answer (x);
    s->held_bytes.bodies -= x->asked.bounds.counted;
    if (x->answer.stream)
        stream_forget (x->answer.stream);
    free (x->asked.target);
    free (x->asked.headers);
    strv_free (&x->asked.trimmed);
    if (x->is_secret && x->asked.body.data)
        explicit_bzero (x->asked.body.data, x->asked.body.len);
    buf_free (&x->asked.body);
    strv_free (&x->answer.lines);
    free (x->answer.text);
    free (x);
}

/* A name with blanks ("Content-Length : 5") is a header to some readers and none to others. */
static bool
is_plain_name (const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)name[i] <= ' ' || name[i] == 0x7f)
            return false;
    return len > 0;
}

/* libmicrohttpd ends a line's value in its buffer, in the place of CR LF: two zero bytes. After a
 * bare LF there is one, and a NUL within the value looks the same. Later versions refuse both. */
static bool
ends_in_two (const char *value, size_t len)
{
    return MHD_VERSION >= 0x00097706 || ! value[0] || value[len + 1] == '\0';
}

/* libmicrohttpd leaves blanks at the end of a value. */
static enum MHD_Result
on_header (void *ctx, enum MHD_ValueKind kind, const char *name, size_t name_len, const char *value,
           size_t value_len)
{
    (void)kind;
    struct http_exchange *x = ctx;
    size_t len = value ? value_len : 0;
    x->asked.has_bad_name |=
        ! is_plain_name (name, name_len) || (value && ! ends_in_two (value, len));
    while (len && (value[len - 1] == ' ' || value[len - 1] == '\t'))
        len--;
    if (len < value_len) {
        strv_take (&x->asked.trimmed, x_strndup (value, len));
        value = x->asked.trimmed.items[x->asked.trimmed.len - 1];
    }
    x_grow (x->asked.headers, x->asked.header_count, x->asked.header_cap);
    x->asked.headers[x->asked.header_count++] =
        (struct http_header){ name, value ? value : "", len };
    return MHD_YES;
}

/* The stream's bytes are asked for whenever the socket has room. */
static ssize_t
on_stream_read (void *ctx, uint64_t position, char *out, size_t cap)
{
    (void)position;
    struct http_stream *stream = ctx;
    ssize_t n = stream->source->read (stream->ctx, out, cap);
    if (n > 0)
        return n;
    if (n == HTTP_STREAM_CUT)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (n == HTTP_STREAM_END || stream->server->own.is_ending)
        return MHD_CONTENT_READER_END_OF_STREAM;
    stream->is_suspended = true;
    MHD_suspend_connection (stream->mhd);
    return 0;
}

void
http_stream_plan_tick (struct http_stream *stream, uint64_t now)
{
    struct http_server *s = stream->server;
    if (! stream->source->tick_ms)
        return;
    stream->tick_at_ms = now + stream->source->tick_ms;
    if (! s->own.next_tick_ms || stream->tick_at_ms < s->own.next_tick_ms)
        s->own.next_tick_ms = stream->tick_at_ms;
}

static struct MHD_Response *
make_response (struct http_exchange *x)
{
    struct http_server *s = x->server;
    if (! x->answer.stream)
        return MHD_create_response_from_buffer (x->answer.len, steal_ptr (&x->answer.text),
                                                MHD_RESPMEM_MUST_FREE);
    http_stream_plan_tick (x->answer.stream, clock_monotonic_ms ());
    x->answer.stream->next = s->own.streams;
    x->answer.stream->link = &s->own.streams;
    if (x->answer.stream->next)
        x->answer.stream->next->link = &x->answer.stream->next;
    s->own.streams = x->answer.stream;
    struct MHD_Response *response = MHD_create_response_from_callback (
        MHD_SIZE_UNKNOWN, STREAM_BLOCK_BYTES, on_stream_read, x->answer.stream, NULL);
    /* HTTP/1.1 in name, but not chunked: the body ends with the connection (door.md 8.1). */
    MHD_set_response_options (response, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_RO_END);
    return response;
}

static enum MHD_Result
queue_answer (struct http_exchange *x)
{
    struct MHD_Response *response = make_response (x);
    for (size_t i = 0; i + 1 < x->answer.lines.len; i += 2)
        MHD_add_response_header (response, x->answer.lines.items[i], x->answer.lines.items[i + 1]);
    if (x->answer.closes) {
        MHD_add_response_header (response, "Connection", "close");
        x->connection->drains = true;
    }
    enum MHD_Result result = MHD_queue_response (x->mhd, (unsigned)x->answer.status, response);
    MHD_destroy_response (response);
    return result;
}

static void
refuse_with (struct http_exchange *x, int status)
{
    http_refuse (x, status, NULL, 0, NULL, 0);
}

/* What may be said once is said twice, or a length beside chunks: where the body ends, what it is
 * and whom it is for would be a matter of who reads it. */
static bool
is_ambiguous (const struct http_exchange *x)
{
    static const char *const single[] = { "content-length", "content-type", "host", "origin" };
    for (size_t i = 0; i < ARRAY_LEN (single); i++) {
        size_t lines;
        if (http_exchange_header (x, single[i], &lines) && lines > 1)
            return true;
    }
    return http_exchange_header (x, "content-length", NULL) &&
           http_exchange_header (x, "transfer-encoding", NULL);
}

/* Bodies that are being read have a sum, all connections together. */
static bool
has_room_for_body (const struct http_exchange *x, size_t len)
{
    const struct http_server *s = x->server;
    return len <= SMALL_BODY_BYTES ||
           s->held_bytes.bodies - x->asked.bounds.counted + len <= s->limits.bodies_bytes;
}

/* Room for that much of it, counted until the exchange ends. */
static bool
count_body (struct http_exchange *x, size_t len)
{
    if (! has_room_for_body (x, len))
        return false;
    if (len > SMALL_BODY_BYTES && len > x->asked.bounds.counted) {
        x->server->held_bytes.bodies += len - x->asked.bounds.counted;
        x->asked.bounds.counted = len;
    }
    return true;
}

/* A body in a coding that is not read here has no end that could be found. */
static bool
has_unknown_coding (const struct http_exchange *x)
{
    size_t codings;
    const char *coding = http_exchange_header (x, "transfer-encoding", &codings);
    return coding && (codings > 1 || strcasecmp (coding, "chunked") != 0);
}

static void
read_head (struct http_exchange *x, const char *method, const char *version)
{
    struct http_server *s = x->server;
    x->asked.has_head = true;
    x->asked.method = method;
    x->connection = connection_of (x->mhd);
    http_line_enter (x->connection, &s->own.receiving);
    MHD_get_connection_values_n (x->mhd, MHD_HEADER_KIND, on_header, x);
    const char *length = http_exchange_header (x, "content-length", NULL);
    x->asked.content_length = length ? strtoull (length, NULL, 10) : 0;
    size_t head_bytes =
        MHD_get_connection_info (x->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)->header_size;
    if (x->asked.header_count > s->limits.head_lines || head_bytes > s->limits.head_bytes) {
        refuse_with (x, 431);
        return;
    }
    bool lacks_host = strcmp (version, "HTTP/1.1") == 0 && ! http_exchange_header (x, "host", NULL);
    if (x->asked.has_bad_name || lacks_host || is_ambiguous (x)) {
        refuse_with (x, 400);
        return;
    }
    if (has_unknown_coding (x)) {
        refuse_with (x, 501);
        return;
    }
    x->asked.bounds.limit = s->handler->head (s->ctx, x);
    if (x->asked.bounds.limit > s->limits.body_bytes)
        x->asked.bounds.limit = s->limits.body_bytes;
    /* A body nobody wants is read and dropped while it is small, so that the connection lives on:
     * an answer queued before a request's end makes libmicrohttpd close. */
    x->asked.drops_body = x->answer.is_there || x->asked.bounds.limit == 0;
    bool is_too_large =
        x->asked.content_length > (x->asked.drops_body ? DRAIN_BYTES : x->asked.bounds.limit);
    if (x->answer.is_there)
        x->answer.closes = x->answer.closes || is_too_large;
    else if (is_too_large)
        refuse_with (x, 413);
    else if (! x->asked.drops_body && ! has_room_for_body (x, (size_t)x->asked.content_length))
        refuse_with (x, 503);
}

#define NOTHING_MORE "Connection: close\r\nContent-Length: 0\r\n\r\n"

/* A chunked body grew over its limit, or all of them over theirs: libmicrohttpd takes no answer in
 * the middle of one, so it is written here. */
static enum MHD_Result
refuse_in_body (struct http_exchange *x, bool is_full)
{
    const char *answer = is_full ? "HTTP/1.1 503 Service Unavailable\r\n" NOTHING_MORE
                                 : "HTTP/1.1 413 Content Too Large\r\n" NOTHING_MORE;
    (void)! send (x->connection->fd, answer, strlen (answer), MSG_NOSIGNAL | MSG_DONTWAIT);
    x->connection->drains = true;
    return MHD_NO;
}

static enum MHD_Result
take_body (struct http_exchange *x, const char *data, size_t *len)
{
    size_t limit = x->asked.drops_body ? DRAIN_BYTES : x->asked.bounds.limit;
    if (x->asked.body.len + x->asked.bounds.dropped + *len > limit)
        return refuse_in_body (x, false);
    if (! x->asked.drops_body && ! count_body (x, x->asked.body.len + *len))
        return refuse_in_body (x, true);
    if (x->asked.drops_body)
        x->asked.bounds.dropped += *len;
    else
        buf_append (&x->asked.body, data, *len);
    *len = 0;
    return MHD_YES;
}

static void
suspend (struct http_exchange *x)
{
    struct http_server *s = x->server;
    x->is_suspended = true;
    x->next = s->own.held;
    x->link = &s->own.held;
    if (x->next)
        x->next->link = &x->next;
    s->own.held = x;
    MHD_suspend_connection (x->mhd);
}

static enum MHD_Result
on_access (void *ctx, struct MHD_Connection *mhd, const char *path, const char *method,
           const char *version, const char *upload, size_t *upload_len, void **request_context)
{
    (void)ctx, (void)mhd, (void)path;
    struct http_exchange *x = *request_context;
    struct http_server *s = x->server;
    if (! x->asked.has_head) {
        read_head (x, method, version);
        return x->answer.is_there && x->answer.closes ? queue_answer (x) : MHD_YES;
    }
    if (*upload_len)
        return take_body (x, upload, upload_len);
    if (x->is_dropped)
        return MHD_NO;
    if (! x->is_seen) {
        x->is_seen = true;
        http_line_leave (x->connection);
        if (! x->answer.is_there)
            s->handler->request (s->ctx, x);
    }
    pthread_mutex_lock (&s->lock);
    bool has_reply = x->answer.is_there;
    pthread_mutex_unlock (&s->lock);
    if (has_reply)
        return queue_answer (x);
    if (! x->is_held)
        return MHD_NO; /* a handler that neither answered nor held */
    suspend (x);
    return MHD_YES;
}

bool
http_server_start_daemon (struct http_server *s)
{
    size_t memory = s->limits.head_bytes + POOL_SLACK_BYTES;
    s->own.daemon = MHD_start_daemon (
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
        on_access, s, MHD_OPTION_CONNECTION_MEMORY_LIMIT, memory, MHD_OPTION_CONNECTION_LIMIT,
        s->limits.connections + 64, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)((s->limits.idle_timeout_ms + 999) / 1000), MHD_OPTION_URI_LOG_CALLBACK,
        on_request_line, s, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
        MHD_OPTION_END);
    if (! s->own.daemon)
        return false;
    int fd = MHD_get_daemon_info (s->own.daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = s };
    return epoll_ctl (s->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}
