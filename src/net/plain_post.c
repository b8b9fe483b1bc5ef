/* SPDX-License-Identifier: Apache-2.0 */
#include "net/plain_post.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fdio.h"
#include "net/http_names.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
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

/* One address as the lookup gives it: "192.0.2.1" or "[2001:db8::1]". */
static bool
read_address (const char *text, uint16_t port, struct sockaddr_storage *out, socklen_t *len)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)out;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
    *out = (struct sockaddr_storage){ 0 };
    _cleanup_free_ char *bare =
        text[0] == '[' ? x_strndup (text + 1, strcspn (text + 1, "]")) : x_strdup (text);
    if (inet_pton (AF_INET, bare, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons (port);
        *len = sizeof *v4;
        return true;
    }
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons (port);
    *len = sizeof *v6;
    return inet_pton (AF_INET6, bare, &v6->sin6_addr) == 1;
}

static int
connect_one (const char *address, uint16_t port, uint64_t end_ms)
{
    struct sockaddr_storage to;
    socklen_t to_len, problem_len = sizeof (int);
    int problem = 0;
    if (! read_address (address, port, &to, &to_len)) {
        errno = EAFNOSUPPORT;
        return -1;
    }
    _cleanup_close_ int fd = socket (to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (connect (fd, (struct sockaddr *)&to, to_len) < 0) {
        if (errno != EINPROGRESS || ! wait_for (fd, POLLOUT, end_ms) ||
            getsockopt (fd, SOL_SOCKET, SO_ERROR, &problem, &problem_len) < 0)
            return -1;
        errno = problem;
    }
    return problem ? -1 : steal_fd (&fd);
}

/* --- the name --- */

struct lookup {
    char *addresses; /* owned; NULL: none */
    const char *fault;
    bool is_over;
};

static void
take_answer (void *ctx, const char *addresses, const char *fault)
{
    struct lookup *l = ctx;
    l->addresses = addresses ? x_strdup (addresses) : NULL;
    l->fault = fault;
    l->is_over = true;
}

/* The addresses of a host, comma-separated; owned. NULL: E-IO-003. */
static char *
look_up (const char *host, struct mur_error **err)
{
    struct lookup l = { 0 };
    struct http_names *names = http_names_new (err);
    if (! names)
        return NULL;
    http_names_find (names, host, take_answer, &l);
    while (! l.is_over) {
        fd_wait (http_names_fd (names), POLLIN, http_names_timeout_ms (names, 200));
        http_names_process (names);
    }
    http_names_free (names);
    if (! l.addresses)
        mur_fail (err, E_IO_003, "cannot resolve %s: %s", host, l.fault);
    return l.addresses;
}

static int
connect_any (const struct plain_post *post, uint64_t end_ms, struct mur_error **err)
{
    unsigned long port = strtoul (post->port, NULL, 10);
    size_t len = strlen (post->host);
    bool is_bracketed = len > 2 && post->host[0] == '[' && post->host[len - 1] == ']';
    _cleanup_free_ char *host =
        is_bracketed ? x_strndup (post->host + 1, len - 2) : x_strdup (post->host);
    if (port == 0 || port > UINT16_MAX)
        return mur_fail (err, E_IO_003, "%s is no port", post->port), -1;
    _cleanup_free_ char *addresses = look_up (host, err);
    if (! addresses)
        return -1;
    int fd = -1;
    char *rest = addresses;
    for (char *one; fd < 0 && (one = strsep (&rest, ","));)
        fd = connect_one (one, (uint16_t)port, end_ms);
    if (fd < 0)
        mur_fail_errno (err, E_IO_003, "cannot connect to %s:%s", post->host, post->port);
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
