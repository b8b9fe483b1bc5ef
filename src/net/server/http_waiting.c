/* SPDX-License-Identifier: Apache-2.0 */
#include "net/server/http_waiting.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* A connection that closes is read on for a while: a client that is still sending when its last
 * descriptor here closes is told of a reset and not of the refusal (RFC 9112, 9.6). */
#define DRAIN_MS            500
#define CLOSING_DRAIN_BYTES ((size_t)64 << 20)
#define DRAIN_READS         16 /* at a time: the other connections wait meanwhile */

void
http_line_leave (struct connection *c)
{
    if (! c->line)
        return;
    *(c->older ? &c->older->newer : &c->line->oldest) = c->newer;
    *(c->newer ? &c->newer->older : &c->line->newest) = c->older;
    c->line = NULL;
}

void
http_line_enter (struct connection *c, struct line *line)
{
    http_line_leave (c);
    c->line = line;
    c->since_ms = clock_monotonic_ms ();
    c->older = line->newest;
    c->newer = NULL;
    *(c->older ? &c->older->newer : &line->oldest) = c;
    line->newest = c;
}

static void
end_waiting (struct connection *c)
{
    http_line_leave (c);
    shutdown (c->fd, SHUT_RDWR);
}

bool
http_shed_one (struct http_server *s)
{
    struct connection *c = s->own.waiting.oldest ? s->own.waiting.oldest : s->own.receiving.oldest;
    if (c)
        end_waiting (c);
    return c != NULL;
}

uint64_t
http_line_keep_time (struct line *line, uint64_t timeout_ms, uint64_t now)
{
    while (line->oldest && line->oldest->since_ms + timeout_ms <= now)
        end_waiting (line->oldest);
    return line->oldest ? line->oldest->since_ms + timeout_ms : 0;
}

void
http_watch_hang_up (struct connection *c)
{
    struct epoll_event event = { .events = EPOLLRDHUP | EPOLLET, .data.ptr = c };
    epoll_ctl (c->server->epoll_fd, EPOLL_CTL_ADD, c->fd, &event);
}

void
http_note_hang_up (struct connection *c)
{
    if (c->is_hung_up)
        return;
    c->is_hung_up = true;
    c->next_hung_up = c->server->own.hung_up;
    c->server->own.hung_up = c;
}

void
http_tell_hang_ups (struct http_server *s)
{
    for (const struct connection *c = s->own.hung_up; c; c = c->next_hung_up)
        shutdown (c->fd, SHUT_RD);
    s->own.hung_up = NULL;
}

void
http_connection_forget (struct connection *c)
{
    struct http_server *s = c->server;
    /* Before it is duplicated for a drain, which would keep it watched. */
    epoll_ctl (s->epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
    for (struct connection **at = &s->own.hung_up; *at; at = &(*at)->next_hung_up)
        if (*at == c) {
            *at = c->next_hung_up;
            break;
        }
    http_line_leave (c);
    s->own.connections--;
}

void
http_drain_begin (struct http_server *s, int fd)
{
    if (fd < 0)
        return;
    shutdown (fd, SHUT_WR);
    struct drain *d = x_new0 (struct drain);
    *d = (struct drain){ WATCHED_DRAIN, fd, CLOSING_DRAIN_BYTES, clock_monotonic_ms () + DRAIN_MS,
                         s->own.drains };
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = d };
    epoll_ctl (s->epoll_fd, EPOLL_CTL_ADD, fd, &event);
    s->own.drains = d;
}

void
http_drain_some (struct drain *d)
{
    char sink[16 << 10];
    for (int i = 0; i < DRAIN_READS; i++) {
        ssize_t n = recv (d->fd, sink, sizeof sink, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0 || (size_t)n >= d->left) {
            d->until_ms = 0; /* reaped below, when no event can name it any more */
            return;
        }
        d->left -= (size_t)n;
    }
}

void
http_drains_reap (struct http_server *s, uint64_t now)
{
    struct drain **at = &s->own.drains;
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
