/* SPDX-License-Identifier: Apache-2.0
 *
 * The HTTP server: libmicrohttpd run from our own epoll loop on one thread. See http_server.h.
 *
 * We accept ourselves and hand connections over (MHD_add_connection), so that the cap sheds whom we
 * choose and no library default decides. Other threads never touch libmicrohttpd: an answer or a
 * wake is queued under server->lock and an eventfd tells the loop. A refused connection is
 * half-closed and drained on a duplicate of its descriptor after libmicrohttpd let go of it.
 */
#include "net/http_server_impl.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#define DRAIN_BYTES        ((size_t)64 << 10)
#define DRAIN_MS           500
#define STREAM_BLOCK_BYTES 4096
#define POOL_SLACK_BYTES   ((size_t)16 << 10) /* what parsing needs beside the bytes of a head */
#define ACCEPT_PAUSE_MS    100

const struct http_server_limits http_server_default_limits = {
    .head_bytes = (size_t)64 << 10,
    .head_lines = 128,
    .body_bytes = (size_t)16 << 20,
    .head_timeout_ms = 30000,
    .idle_timeout_ms = 30000,
    .connections = 1024,
    .reserved = 16,
    .answer_bytes = (size_t)256 << 20,
};

/* --- connections that are not served yet --- */

static void
leave_line (struct connection *c)
{
    if (! c->line)
        return;
    *(c->older ? &c->older->newer : &c->line->oldest) = c->newer;
    *(c->newer ? &c->newer->older : &c->line->newest) = c->older;
    c->line = NULL;
}

static void
enter_line (struct connection *c, struct line *line)
{
    leave_line (c);
    c->line = line;
    c->since_ms = clock_monotonic_ms ();
    c->older = line->newest;
    c->newer = NULL;
    *(c->older ? &c->older->newer : &line->oldest) = c;
    line->newest = c;
}

/* Ends the connection longest without a complete head, else the one longest without a complete
 * body; libmicrohttpd sees the end of file and lets go. */
static bool
shed_one (struct http_server *s)
{
    struct connection *c = s->waiting.oldest ? s->waiting.oldest : s->receiving.oldest;
    if (! c)
        return false;
    leave_line (c);
    shutdown (c->fd, SHUT_RDWR);
    return true;
}

/* libmicrohttpd, whose epoll is edge-triggered, overlooks an end of file that came together with
 * the last bytes. We watch for it beside, and once those bytes were taken shut down reading, which
 * makes another edge. */
static void
watch_hang_up (struct connection *c)
{
    struct epoll_event event = { .events = EPOLLRDHUP | EPOLLET, .data.ptr = c };
    epoll_ctl (c->server->epoll_fd, EPOLL_CTL_ADD, c->fd, &event);
}

static void
note_hang_up (struct connection *c)
{
    if (c->is_hung_up)
        return;
    c->is_hung_up = true;
    c->next_hung_up = c->server->hung_up;
    c->server->hung_up = c;
}

static void
tell_hang_ups (struct http_server *s)
{
    for (const struct connection *c = s->hung_up; c; c = c->next_hung_up)
        shutdown (c->fd, SHUT_RD);
    s->hung_up = NULL;
}

static void
forget_connection (struct connection *c)
{
    struct http_server *s = c->server;
    /* Before it is duplicated for a drain, which would keep it watched. */
    epoll_ctl (s->epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
    for (struct connection **at = &s->hung_up; *at; at = &(*at)->next_hung_up)
        if (*at == c) {
            *at = c->next_hung_up;
            break;
        }
    leave_line (c);
    s->connections--;
}

static struct connection *
connection_of (struct MHD_Connection *mhd)
{
    return MHD_get_connection_info (mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static void
begin_drain (struct http_server *s, int fd)
{
    if (fd < 0)
        return;
    shutdown (fd, SHUT_WR);
    struct drain *d = x_new0 (struct drain);
    *d = (struct drain){ WATCHED_DRAIN, fd, DRAIN_BYTES, clock_monotonic_ms () + DRAIN_MS,
                         s->drains };
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = d };
    epoll_ctl (s->epoll_fd, EPOLL_CTL_ADD, fd, &event);
    s->drains = d;
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
        s->connections++;
        enter_line (c, &s->waiting);
        watch_hang_up (c);
        return;
    }
    struct connection *c = *socket_context;
    if (! c)
        return;
    forget_connection (c);
    if (c->drains)
        begin_drain (s, fcntl (c->fd, F_DUPFD_CLOEXEC, 3));
    free (c);
}

/* --- exchanges --- */

static void *
on_request_line (void *ctx, const char *target, struct MHD_Connection *mhd)
{
    struct http_exchange *x = x_new0 (struct http_exchange);
    x->server = ctx;
    x->mhd = mhd;
    x->target = x_strdup (target);
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
    s->answer_bytes -= x->reserved;
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
    if (c && ! s->is_ending)
        enter_line (c, &s->waiting);
    else if (c)
        shutdown (c->fd, SHUT_RDWR);
    if (! x)
        return;
    if (c && x->has_head && ! x->is_seen && ! x->has_reply && ! x->drops_body)
        answer_truncated (x);
    if (x->is_long_lived)
        s->long_lived--;
    if (x->is_held)
        unqueue (x);
    release_answer (x);
    if (x->stream)
        stream_forget (x->stream);
    free (x->target);
    free (x->headers);
    strv_free (&x->trimmed);
    if (x->is_secret && x->body.data)
        explicit_bzero (x->body.data, x->body.len);
    buf_free (&x->body);
    strv_free (&x->lines);
    free (x->reply);
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

/* libmicrohttpd leaves blanks at the end of a value. */
static enum MHD_Result
on_header (void *ctx, enum MHD_ValueKind kind, const char *name, size_t name_len, const char *value,
           size_t value_len)
{
    (void)kind;
    struct http_exchange *x = ctx;
    size_t len = value ? value_len : 0;
    x->has_bad_name |= ! is_plain_name (name, name_len);
    while (len && (value[len - 1] == ' ' || value[len - 1] == '\t'))
        len--;
    if (len < value_len) {
        strv_take (&x->trimmed, x_strndup (value, len));
        value = x->trimmed.items[x->trimmed.len - 1];
    }
    x_grow (x->headers, x->header_count, x->header_cap);
    x->headers[x->header_count++] = (struct http_header){ name, value ? value : "", len };
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
    if (n == HTTP_STREAM_END || stream->server->is_ending)
        return MHD_CONTENT_READER_END_OF_STREAM;
    stream->is_suspended = true;
    MHD_suspend_connection (stream->mhd);
    return 0;
}

static void
plan_tick (struct http_stream *stream, uint64_t now)
{
    struct http_server *s = stream->server;
    if (! stream->source->tick_ms)
        return;
    stream->tick_at_ms = now + stream->source->tick_ms;
    if (! s->next_tick_ms || stream->tick_at_ms < s->next_tick_ms)
        s->next_tick_ms = stream->tick_at_ms;
}

static struct MHD_Response *
make_response (struct http_exchange *x)
{
    struct http_server *s = x->server;
    if (! x->stream)
        return MHD_create_response_from_buffer (x->reply_len, steal_ptr (&x->reply),
                                                MHD_RESPMEM_MUST_FREE);
    plan_tick (x->stream, clock_monotonic_ms ());
    x->stream->next = s->streams;
    x->stream->link = &s->streams;
    if (x->stream->next)
        x->stream->next->link = &x->stream->next;
    s->streams = x->stream;
    struct MHD_Response *response = MHD_create_response_from_callback (
        MHD_SIZE_UNKNOWN, STREAM_BLOCK_BYTES, on_stream_read, x->stream, NULL);
    /* HTTP/1.1 in name, but not chunked: the body ends with the connection (door.md 8.1). */
    MHD_set_response_options (response, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_RO_END);
    return response;
}

static enum MHD_Result
queue_answer (struct http_exchange *x)
{
    struct MHD_Response *response = make_response (x);
    for (size_t i = 0; i + 1 < x->lines.len; i += 2)
        MHD_add_response_header (response, x->lines.items[i], x->lines.items[i + 1]);
    if (x->closes) {
        MHD_add_response_header (response, "Connection", "close");
        x->connection->drains = true;
    }
    enum MHD_Result result = MHD_queue_response (x->mhd, (unsigned)x->status, response);
    MHD_destroy_response (response);
    return result;
}

static void
refuse_with (struct http_exchange *x, int status)
{
    http_refuse (x, status, NULL, 0, NULL, 0);
}

/* Lengths that differ, or a length beside chunks: where the body ends would be a matter of who
 * reads it, and the rest of it another request. */
static bool
has_ambiguous_end (const struct http_exchange *x)
{
    size_t lengths;
    const char *first = http_exchange_header (x, "content-length", &lengths);
    for (size_t i = 0; lengths > 1 && i < x->header_count; i++)
        if (strcasecmp (x->headers[i].name, "content-length") == 0 &&
            strcmp (x->headers[i].value, first) != 0)
            return true;
    return first && http_exchange_header (x, "transfer-encoding", NULL);
}

static void
read_head (struct http_exchange *x, const char *method)
{
    struct http_server *s = x->server;
    x->has_head = true;
    x->method = method;
    x->connection = connection_of (x->mhd);
    enter_line (x->connection, &s->receiving);
    MHD_get_connection_values_n (x->mhd, MHD_HEADER_KIND, on_header, x);
    const char *length = http_exchange_header (x, "content-length", NULL);
    x->content_length = length ? strtoull (length, NULL, 10) : 0;
    size_t head_bytes =
        MHD_get_connection_info (x->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)->header_size;
    if (x->header_count > s->limits.head_lines || head_bytes > s->limits.head_bytes) {
        refuse_with (x, 431);
        return;
    }
    if (x->has_bad_name || has_ambiguous_end (x)) {
        refuse_with (x, 400);
        return;
    }
    x->body_limit = s->handler->head (s->ctx, x);
    if (x->body_limit > s->limits.body_bytes)
        x->body_limit = s->limits.body_bytes;
    /* A body nobody wants is read and dropped while it is small, so that the connection lives on:
     * an answer queued before a request's end makes libmicrohttpd close. */
    x->drops_body = x->has_reply || x->body_limit == 0;
    bool is_too_large = x->content_length > (x->drops_body ? DRAIN_BYTES : x->body_limit);
    if (x->has_reply)
        x->closes = x->closes || is_too_large;
    else if (is_too_large)
        refuse_with (x, 413);
}

/* A chunked body grew over its limit: libmicrohttpd takes no answer in the middle of one, so it is
 * written here. */
static enum MHD_Result
refuse_in_body (struct http_exchange *x)
{
    static const char answer[] = "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\n"
                                 "Content-Length: 0\r\n\r\n";
    (void)! send (x->connection->fd, answer, sizeof answer - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    x->connection->drains = true;
    return MHD_NO;
}

static enum MHD_Result
take_body (struct http_exchange *x, const char *data, size_t *len)
{
    size_t limit = x->drops_body ? DRAIN_BYTES : x->body_limit;
    if (x->body.len + x->dropped + *len > limit)
        return refuse_in_body (x);
    if (x->drops_body)
        x->dropped += *len;
    else
        buf_append (&x->body, data, *len);
    *len = 0;
    return MHD_YES;
}

static void
suspend (struct http_exchange *x)
{
    struct http_server *s = x->server;
    x->is_suspended = true;
    x->next = s->held;
    x->link = &s->held;
    if (x->next)
        x->next->link = &x->next;
    s->held = x;
    MHD_suspend_connection (x->mhd);
}

static enum MHD_Result
on_access (void *ctx, struct MHD_Connection *mhd, const char *path, const char *method,
           const char *version, const char *upload, size_t *upload_len, void **request_context)
{
    (void)ctx, (void)mhd, (void)path, (void)version;
    struct http_exchange *x = *request_context;
    struct http_server *s = x->server;
    if (! x->has_head) {
        read_head (x, method);
        return x->has_reply && x->closes ? queue_answer (x) : MHD_YES;
    }
    if (*upload_len)
        return take_body (x, upload, upload_len);
    if (x->is_dropped)
        return MHD_NO;
    if (! x->is_seen) {
        x->is_seen = true;
        leave_line (x->connection);
        if (! x->has_reply)
            s->handler->request (s->ctx, x);
    }
    pthread_mutex_lock (&s->lock);
    bool has_reply = x->has_reply;
    pthread_mutex_unlock (&s->lock);
    if (has_reply)
        return queue_answer (x);
    if (! x->is_held)
        return MHD_NO; /* a handler that neither answered nor held */
    suspend (x);
    return MHD_YES;
}

/* --- the loop --- */

static void
watch_listener (struct http_server *s, bool accepts)
{
    if (s->is_accepting == accepts || s->listen_fd < 0)
        return;
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = &s->listen_fd };
    epoll_ctl (s->epoll_fd, accepts ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, s->listen_fd, &event);
    s->is_accepting = accepts;
}

static void
accept_some (struct http_server *s)
{
    for (int i = 0; i < 64; i++) {
        struct sockaddr_storage peer;
        socklen_t peer_len = sizeof peer;
        int fd = accept4 (s->listen_fd, (struct sockaddr *)&peer, &peer_len,
                          SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
            shed_one (s);
            watch_listener (s, false);
            s->accept_again_ms = clock_monotonic_ms () + ACCEPT_PAUSE_MS;
            return;
        }
        if (fd < 0)
            return;
        if (s->connections >= s->limits.connections && ! shed_one (s)) {
            close (fd);
            continue;
        }
        int on = 1;
        setsockopt (fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        MHD_add_connection (s->daemon, fd, (struct sockaddr *)&peer, peer_len);
    }
}

/* Answers and wakes other threads left. */
static void
serve_wishes (struct http_server *s)
{
    uint64_t count;
    (void)! read (s->event_fd, &count, sizeof count);
    pthread_mutex_lock (&s->lock);
    for (struct http_exchange *x = s->answered; x; x = x->next_queued) {
        x->is_queued = false;
        if (! x->is_suspended)
            continue;
        x->is_suspended = false;
        *x->link = x->next;
        if (x->next)
            x->next->link = x->link;
        MHD_resume_connection (x->mhd);
    }
    s->answered = NULL;
    for (struct http_stream *stream = s->woken; stream; stream = stream->next_queued) {
        stream->is_queued = false;
        if (stream->is_suspended)
            MHD_resume_connection (stream->mhd);
        stream->is_suspended = false;
    }
    s->woken = NULL;
    pthread_mutex_unlock (&s->lock);
}

static void
drain_some (struct drain *d)
{
    char sink[4096];
    for (;;) {
        ssize_t n = recv (d->fd, sink, sizeof sink, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0 || (size_t)n >= d->left)
            break;
        d->left -= (size_t)n;
    }
    d->until_ms = 0; /* reaped below, when no event can name it any more */
}

static void
reap_drains (struct http_server *s, uint64_t now)
{
    struct drain **at = &s->drains;
    while (*at) {
        struct drain *d = *at;
        if (d->until_ms > now) {
            at = &d->next;
            continue;
        }
        *at = d->next;
        close (d->fd);
        free (d);
    }
}

static int
min_wait (int wait_ms, uint64_t deadline_ms, uint64_t now)
{
    uint64_t left = deadline_ms > now ? deadline_ms - now : 0;
    if (left > INT32_MAX)
        left = INT32_MAX;
    return wait_ms < 0 || (int)left < wait_ms ? (int)left : wait_ms;
}

static void
tick_streams (struct http_server *s, uint64_t now)
{
    s->next_tick_ms = 0;
    for (struct http_stream *stream = s->streams; stream; stream = stream->next) {
        if (! stream->tick_at_ms)
            continue;
        if (stream->tick_at_ms <= now) {
            plan_tick (stream, now);
            if (stream->is_suspended)
                MHD_resume_connection (stream->mhd);
            stream->is_suspended = false;
        } else if (! s->next_tick_ms || stream->tick_at_ms < s->next_tick_ms)
            s->next_tick_ms = stream->tick_at_ms;
    }
}

/* Ends what is late; returns how long the loop may sleep. */
static int
keep_time (struct http_server *s)
{
    uint64_t now = clock_monotonic_ms ();
    int wait_ms = -1;
    const struct connection *oldest;
    while ((oldest = s->waiting.oldest) && oldest->since_ms + s->limits.head_timeout_ms <= now)
        shed_one (s);
    if (oldest)
        wait_ms = min_wait (wait_ms, oldest->since_ms + s->limits.head_timeout_ms, now);
    if (s->next_tick_ms && s->next_tick_ms <= now)
        tick_streams (s, now);
    if (s->next_tick_ms)
        wait_ms = min_wait (wait_ms, s->next_tick_ms, now);
    reap_drains (s, now);
    for (const struct drain *d = s->drains; d; d = d->next)
        wait_ms = min_wait (wait_ms, d->until_ms, now);
    if (! s->is_accepting && s->accept_again_ms && s->accept_again_ms <= now) {
        s->accept_again_ms = 0;
        watch_listener (s, true);
    } else if (s->accept_again_ms)
        wait_ms = min_wait (wait_ms, s->accept_again_ms, now);
    MHD_UNSIGNED_LONG_LONG library_ms;
    if (MHD_get_timeout (s->daemon, &library_ms) == MHD_YES)
        wait_ms = min_wait (wait_ms, now + library_ms, now);
    return wait_ms;
}

static void
run_once (struct http_server *s, int wait_ms)
{
    struct epoll_event events[32];
    int count = epoll_wait (s->epoll_fd, events, (int)ARRAY_LEN (events), wait_ms);
    for (int i = 0; i < count; i++) {
        void *what = events[i].data.ptr;
        if (what == &s->listen_fd)
            accept_some (s);
        else if (what == &s->event_fd)
            serve_wishes (s);
        else if (what == s)
            ; /* libmicrohttpd's own set: MHD_run looks there anyhow */
        else if (*(const enum watched *)what == WATCHED_CONNECTION)
            note_hang_up (what);
        else
            drain_some (what);
    }
    MHD_run (s->daemon);
    tell_hang_ups (s);
}

static bool
is_closing (struct http_server *s)
{
    pthread_mutex_lock (&s->lock);
    bool closing = s->is_closing;
    pthread_mutex_unlock (&s->lock);
    return closing;
}

/* Streams end once what is queued was written; held answers come from other threads meanwhile. */
static void
wind_down (struct http_server *s)
{
    s->is_ending = true;
    watch_listener (s, false);
    close (steal_fd (&s->listen_fd));
    s->accept_again_ms = 0;
    while (shed_one (s))
        ;
    for (struct http_stream *stream = s->streams; stream; stream = stream->next) {
        if (stream->is_suspended)
            MHD_resume_connection (stream->mhd);
        stream->is_suspended = false;
    }
    uint64_t now;
    while (s->connections && (now = clock_monotonic_ms ()) < s->close_by_ms) {
        /* A connection that one run closed is reported by the next. */
        MHD_run (s->daemon);
        MHD_run (s->daemon);
        if (! s->connections)
            break;
        run_once (s, min_wait (keep_time (s), s->close_by_ms, now));
    }
    /* What is still here is dropped: libmicrohttpd wants nothing suspended when it stops. */
    pthread_mutex_lock (&s->lock);
    s->answered = NULL;
    pthread_mutex_unlock (&s->lock);
    while (s->held) {
        struct http_exchange *x = s->held;
        x->is_dropped = true;
        x->is_suspended = false;
        s->held = x->next;
        if (x->next)
            x->next->link = &s->held;
        shutdown (x->connection->fd, SHUT_RDWR);
        MHD_resume_connection (x->mhd);
    }
    MHD_run (s->daemon);
    MHD_run (s->daemon);
}

static bool
start_daemon (struct http_server *s)
{
    size_t memory = s->limits.head_bytes + POOL_SLACK_BYTES;
    s->daemon = MHD_start_daemon (
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
        on_access, s, MHD_OPTION_CONNECTION_MEMORY_LIMIT, memory, MHD_OPTION_CONNECTION_LIMIT,
        s->limits.connections + 64, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)((s->limits.idle_timeout_ms + 999) / 1000), MHD_OPTION_URI_LOG_CALLBACK,
        on_request_line, s, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
        MHD_OPTION_END);
    if (! s->daemon)
        return false;
    int fd = MHD_get_daemon_info (s->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = s };
    return epoll_ctl (s->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

static void *
run (void *ctx)
{
    struct http_server *s = ctx;
    watch_listener (s, true);
    while (! is_closing (s))
        run_once (s, keep_time (s));
    wind_down (s);
    MHD_stop_daemon (s->daemon);
    reap_drains (s, UINT64_MAX);
    return NULL;
}

/* --- binding, serving, closing --- */

/* Literals and localhost need no resolver, which would load half of nsswitch. */
static bool
find_address (const char *address, unsigned port, struct sockaddr_storage *out, socklen_t *len)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)out;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
    memset (out, 0, sizeof *out);
    if (strcasecmp (address, "localhost") == 0)
        address = "127.0.0.1";
    if (inet_pton (AF_INET, address, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons ((uint16_t)port);
        *len = sizeof *v4;
        return true;
    }
    size_t address_len = strlen (address);
    bool has_brackets = address_len > 2 && address[0] == '[' && address[address_len - 1] == ']';
    _cleanup_free_ char *inner =
        has_brackets ? x_strndup (address + 1, address_len - 2) : x_strdup (address);
    if (inet_pton (AF_INET6, inner, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons ((uint16_t)port);
        *len = sizeof *v6;
        return true;
    }
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
    _cleanup_free_ char *service = x_asprintf ("%u", port);
    if (*address == '\0' || getaddrinfo (address, service, &hints, &found) != 0)
        return false;
    memcpy (out, found->ai_addr, found->ai_addrlen);
    *len = found->ai_addrlen;
    freeaddrinfo (found);
    return true;
}

static int
open_listener (const char *address, unsigned port, unsigned *bound, struct mur_error **err)
{
    struct sockaddr_storage at;
    socklen_t len;
    if (! find_address (address, port, &at, &len))
        return mur_fail (err, E_IO_003, "cannot bind \"%s\": the name does not resolve", address),
               -1;
    _cleanup_close_ int fd = socket (at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1;
    if (fd >= 0)
        setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd < 0 || bind (fd, (struct sockaddr *)&at, len) || listen (fd, SOMAXCONN)) {
        if (errno == EADDRINUSE && port) {
            mur_fail (err, E_RUN_010, "port %u is already in use", port);
            mur_hint (err, "choose another network.internal_port, or leave it out to let the "
                           "system pick one");
        } else
            mur_fail_errno (err, E_IO_003, "cannot bind %s:%u", address, port);
        return -1;
    }
    if (getsockname (fd, (struct sockaddr *)&at, &len))
        return mur_fail_errno (err, E_IO_003, "cannot read the bound port"), -1;
    *bound = ntohs (at.ss_family == AF_INET ? ((struct sockaddr_in *)&at)->sin_port
                                            : ((struct sockaddr_in6 *)&at)->sin6_port);
    return steal_fd (&fd);
}

static void
server_free (struct http_server *s)
{
    int fds[] = { s->listen_fd, s->epoll_fd, s->event_fd };
    for (size_t i = 0; i < ARRAY_LEN (fds); i++)
        if (fds[i] >= 0)
            close (fds[i]);
    pthread_mutex_destroy (&s->lock);
    free (s);
}

static bool
start_thread (struct http_server *s)
{
    sigset_t all, before;
    sigfillset (&all);
    pthread_sigmask (SIG_SETMASK, &all, &before);
    int status = pthread_create (&s->thread, NULL, run, s);
    pthread_sigmask (SIG_SETMASK, &before, NULL);
    errno = status;
    if (status == 0)
        pthread_setname_np (s->thread, "mur-door");
    return status == 0;
}

struct http_server *
http_server_bind (const char *address, unsigned port, const struct http_server_limits *limits,
                  struct mur_error **err)
{
    unsigned bound;
    int listen_fd = open_listener (address, port, &bound, err);
    if (listen_fd < 0)
        return NULL;
    struct http_server *s = x_new0 (struct http_server);
    s->limits = *limits;
    s->port = bound;
    s->listen_fd = listen_fd;
    s->epoll_fd = epoll_create1 (EPOLL_CLOEXEC);
    s->event_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init (&s->lock, NULL);
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = &s->event_fd };
    bool is_up = s->epoll_fd >= 0 && s->event_fd >= 0 &&
                 epoll_ctl (s->epoll_fd, EPOLL_CTL_ADD, s->event_fd, &event) == 0;
    if (! is_up) {
        mur_fail_errno (err, E_IO_003, "cannot start the door");
        server_free (s);
        return NULL;
    }
    return s;
}

unsigned
http_server_port (const struct http_server *s)
{
    return s->port;
}

bool
http_server_serve (struct http_server *s, const struct http_server_handler *handler, void *ctx,
                   struct mur_error **err)
{
    s->handler = handler;
    s->ctx = ctx;
    if (! start_daemon (s))
        return mur_fail (err, E_IO_003, "the door cannot answer: libmicrohttpd did not start");
    s->has_thread = start_thread (s);
    return s->has_thread ||
           mur_fail_errno (err, E_IO_003, "the door cannot answer: no thread for it");
}

void
http_server_close (struct http_server *s, uint64_t drain_ms)
{
    if (! s)
        return;
    pthread_mutex_lock (&s->lock);
    s->is_closing = true;
    s->close_by_ms = clock_monotonic_ms () + drain_ms;
    pthread_mutex_unlock (&s->lock);
    http_server_wake (s);
    if (s->has_thread)
        pthread_join (s->thread, NULL);
    else if (s->daemon)
        MHD_stop_daemon (s->daemon);
    server_free (s);
}
