/* SPDX-License-Identifier: Apache-2.0 */
#include "net/server/http_server.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "net/server/http_exchange.h"
#include "net/server/http_loop.h"
#include "net/server/http_requests.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

const struct http_server_limits http_server_default_limits = {
    .head_bytes = (size_t)64 << 10,
    .head_lines = 128,
    .body_bytes = (size_t)16 << 20,
    .head_timeout_ms = 30000,
    .body_timeout_ms = 300000,
    .idle_timeout_ms = 30000,
    .connections = 1024,
    .reserved = 16,
    .answer_bytes = (size_t)256 << 20,
    .bodies_bytes = (size_t)64 << 20,
};

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
    int status = thread_start (&s->thread, http_server_run, s);
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
    if (! http_server_start_daemon (s))
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
    else if (s->own.daemon)
        MHD_stop_daemon (s->own.daemon);
    server_free (s);
}
