/* SPDX-License-Identifier: Apache-2.0
 *
 * A plain POST. See plain_post.h.
 */
#include "net/plain_post.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fdio.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define STATUS_LINE_MAX 1024

/* Milliseconds left, 0 when it is over. */
static int64_t
left_ms (uint64_t end_ms)
{
    uint64_t now = clock_monotonic_ms ();
    return now < end_ms ? (int64_t)(end_ms - now) : 0;
}

/* Waits for <events>. False with errno. */
static bool
wait_for (int fd, short events, uint64_t end_ms)
{
    int ready = fd_wait (fd, events, left_ms (end_ms));
    if (ready == 0)
        errno = ETIMEDOUT;
    return ready > 0;
}

static int
connect_one (const struct addrinfo *a, uint64_t end_ms)
{
    _cleanup_close_ int fd =
        socket (a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
    if (fd < 0)
        return -1;
    int problem = 0;
    socklen_t len = sizeof problem;
    if (connect (fd, a->ai_addr, a->ai_addrlen) < 0) {
        if (errno != EINPROGRESS || ! wait_for (fd, POLLOUT, end_ms) ||
            getsockopt (fd, SOL_SOCKET, SO_ERROR, &problem, &len) < 0)
            return -1;
        errno = problem;
    }
    return problem ? -1 : steal_fd (&fd);
}

static int
connect_any (const struct plain_post *post, uint64_t end_ms, struct mur_error **err)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
    struct addrinfo *found = NULL;
    size_t len = strlen (post->host);
    bool is_bracketed = len > 2 && post->host[0] == '[' && post->host[len - 1] == ']';
    _cleanup_free_ char *host =
        is_bracketed ? x_strndup (post->host + 1, len - 2) : x_strdup (post->host);
    int status = getaddrinfo (host, post->port, &hints, &found);
    if (status != 0) {
        mur_fail (err, E_IO_003, "cannot resolve %s: %s", post->host, gai_strerror (status));
        return -1;
    }
    int fd = -1;
    for (const struct addrinfo *a = found; a && fd < 0; a = a->ai_next)
        fd = connect_one (a, end_ms);
    if (fd < 0)
        mur_fail_errno (err, E_IO_003, "cannot connect to %s:%s", post->host, post->port);
    freeaddrinfo (found);
    return fd;
}

static bool
send_all (int fd, const char *data, size_t len, uint64_t end_ms)
{
    while (len) {
        ssize_t n = send (fd, data, len, MSG_NOSIGNAL);
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        } else if (errno == EAGAIN) {
            if (! wait_for (fd, POLLOUT, end_ms))
                return false;
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

/* The number of "HTTP/1.1 200 OK", or 0 with errno. */
static int
read_status (int fd, uint64_t end_ms)
{
    char line[STATUS_LINE_MAX + 1];
    size_t len = 0;
    int major, minor, status;
    for (;;) {
        ssize_t n = recv (fd, line + len, STATUS_LINE_MAX - len, 0);
        if (n < 0 && errno == EAGAIN) {
            if (! wait_for (fd, POLLIN, end_ms))
                return 0;
            continue;
        }
        if (n < 0 && errno != EINTR)
            return 0;
        len += n > 0 ? (size_t)n : 0;
        line[len] = '\0';
        if (n == 0 || len == STATUS_LINE_MAX || strchr (line, '\n'))
            break;
    }
    errno = EPROTO;
    return sscanf (line, "HTTP/%1d.%1d %3d", &major, &minor, &status) == 3 ? status : 0;
}

int
plain_post (const struct plain_post *post, struct mur_error **err)
{
    uint64_t end_ms = clock_monotonic_ms () + post->timeout_ms;
    _cleanup_close_ int fd = connect_any (post, end_ms, err);
    if (fd < 0)
        return 0;
    _cleanup_buf_ struct buf text = { 0 };
    buf_printf (&text,
                "POST %s HTTP/1.1\r\nHost: %s:%s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                "Connection: close\r\n\r\n",
                post->path, post->host, post->port, post->content_type, post->body_len);
    buf_append (&text, post->body, post->body_len);
    if (! send_all (fd, text.data, text.len, end_ms)) {
        mur_fail_errno (err, E_IO_003, "cannot send to %s:%s", post->host, post->port);
        return 0;
    }
    int status = read_status (fd, end_ms);
    if (! status)
        mur_fail_errno (err, E_IO_003, "%s:%s gave no answer", post->host, post->port);
    return status;
}
