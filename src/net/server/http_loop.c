/* SPDX-License-Identifier: Apache-2.0 */
#include "net/server/http_loop.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "net/server/http_requests.h"
#include "net/server/http_waiting.h"

#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define ACCEPT_PAUSE_MS 100

static void
watch_listener (struct http_server *s, bool accepts)
{
    if (s->own.is_accepting == accepts || s->listen_fd < 0)
        return;
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = &s->listen_fd };
    epoll_ctl (s->epoll_fd, accepts ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, s->listen_fd, &event);
    s->own.is_accepting = accepts;
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
            http_shed_one (s);
            watch_listener (s, false);
            s->own.accept_again_ms = clock_monotonic_ms () + ACCEPT_PAUSE_MS;
            return;
        }
        if (fd < 0)
            return;
        if (s->own.connections >= s->limits.connections && ! http_shed_one (s)) {
            close (fd);
            continue;
        }
        int on = 1;
        setsockopt (fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        MHD_add_connection (s->own.daemon, fd, (struct sockaddr *)&peer, peer_len);
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
    s->own.next_tick_ms = 0;
    for (struct http_stream *stream = s->own.streams; stream; stream = stream->next) {
        if (! stream->tick_at_ms)
            continue;
        if (stream->tick_at_ms <= now) {
            http_stream_plan_tick (stream, now);
            if (stream->is_suspended)
                MHD_resume_connection (stream->mhd);
            stream->is_suspended = false;
        } else if (! s->own.next_tick_ms || stream->tick_at_ms < s->own.next_tick_ms)
            s->own.next_tick_ms = stream->tick_at_ms;
    }
}

/* Ends what is late; returns how long the loop may sleep. */
static int
keep_time (struct http_server *s)
{
    uint64_t now = clock_monotonic_ms ();
    int wait_ms = -1;
    const uint64_t ends[] = {
        http_line_keep_time (&s->own.waiting, s->limits.head_timeout_ms, now),
        http_line_keep_time (&s->own.receiving, s->limits.body_timeout_ms, now),
    };
    for (size_t i = 0; i < ARRAY_LEN (ends); i++)
        if (ends[i])
            wait_ms = min_wait (wait_ms, ends[i], now);
    if (s->own.next_tick_ms && s->own.next_tick_ms <= now)
        tick_streams (s, now);
    if (s->own.next_tick_ms)
        wait_ms = min_wait (wait_ms, s->own.next_tick_ms, now);
    http_drains_reap (s, now);
    for (const struct drain *d = s->own.drains; d; d = d->next)
        wait_ms = min_wait (wait_ms, d->until_ms, now);
    if (! s->own.is_accepting && s->own.accept_again_ms && s->own.accept_again_ms <= now) {
        s->own.accept_again_ms = 0;
        watch_listener (s, true);
    } else if (s->own.accept_again_ms)
        wait_ms = min_wait (wait_ms, s->own.accept_again_ms, now);
    MHD_UNSIGNED_LONG_LONG library_ms;
    if (MHD_get_timeout (s->own.daemon, &library_ms) == MHD_YES)
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
            http_note_hang_up (what);
        else
            http_drain_some (what);
    }
    MHD_run (s->own.daemon);
    http_tell_hang_ups (s);
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
    s->own.is_ending = true;
    watch_listener (s, false);
    close (steal_fd (&s->listen_fd));
    s->own.accept_again_ms = 0;
    while (http_shed_one (s))
        ;
    for (struct http_stream *stream = s->own.streams; stream; stream = stream->next) {
        if (stream->is_suspended)
            MHD_resume_connection (stream->mhd);
        stream->is_suspended = false;
    }
    uint64_t now;
    while (s->own.connections && (now = clock_monotonic_ms ()) < s->close_by_ms) {
        /* A connection that one run closed is reported by the next. */
        MHD_run (s->own.daemon);
        MHD_run (s->own.daemon);
        if (! s->own.connections)
            break;
        run_once (s, min_wait (keep_time (s), s->close_by_ms, now));
    }
    /* What is still here is dropped: libmicrohttpd wants nothing suspended when it stops. */
    pthread_mutex_lock (&s->lock);
    s->answered = NULL;
    pthread_mutex_unlock (&s->lock);
    while (s->own.held) {
        struct http_exchange *x = s->own.held;
        x->is_dropped = true;
        x->is_suspended = false;
        s->own.held = x->next;
        if (x->next)
            x->next->link = &s->own.held;
        shutdown (x->connection->fd, SHUT_RDWR);
        MHD_resume_connection (x->mhd);
    }
    MHD_run (s->own.daemon);
    MHD_run (s->own.daemon);
}

void *
http_server_run (void *ctx)
{
    struct http_server *s = ctx;
    watch_listener (s, true);
    while (! is_closing (s))
        run_once (s, keep_time (s));
    wind_down (s);
    MHD_stop_daemon (s->own.daemon);
    http_drains_reap (s, UINT64_MAX);
    return NULL;
}
