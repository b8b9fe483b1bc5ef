/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fdio.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>

bool
fd_write_all (int fd, const void *data, size_t len)
{
    const char *at = data;
    while (len) {
        ssize_t n = write (fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            if (fd_wait (fd, POLLOUT, -1) < 0)
                return false;
            continue;
        }
        if (n < 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

bool
fd_read_all (int fd, size_t limit, struct buf *out)
{
    size_t start = out->len;
    for (;;) {
        char *to = buf_reserve (out, 16384);
        ssize_t n = read (fd, to, 16384);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        if (n == 0)
            break;
        if (out->len + (size_t)n - start > limit) {
            errno = EFBIG;
            return false;
        }
        out->len += (size_t)n;
    }
    buf_append (out, "", 0);
    return true;
}

bool
fd_read_exact (int fd, void *out, size_t len)
{
    char *at = out;
    while (len) {
        ssize_t n = read (fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        if (n == 0) {
            errno = 0;
            return false;
        }
        at += n;
        len -= (size_t)n;
    }
    return true;
}

int
fd_wait (int fd, short events, int64_t timeout_ms)
{
    uint64_t end = timeout_ms < 0 ? 0 : clock_monotonic_ms () + (uint64_t)timeout_ms;
    for (;;) {
        int wait = -1;
        if (timeout_ms >= 0) {
            uint64_t now = clock_monotonic_ms ();
            uint64_t left = now >= end ? 0 : end - now;
            wait = left > INT_MAX ? INT_MAX : (int)left;
        }
        struct pollfd p = { .fd = fd, .events = events };
        int n = poll (&p, 1, wait);
        if (n < 0 && errno == EINTR)
            continue;
        return n < 0 ? -1 : n > 0;
    }
}

bool
fd_send_all (int fd, const void *data, size_t len, unsigned timeout_s)
{
    const struct timeval timeout = { timeout_s, 0 };
    const char *at = data;
    setsockopt (fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
    while (len) {
        ssize_t n = send (fd, at, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

void
fd_end_answer (int fd, int64_t wait_ms)
{
    char dropped[4096];
    shutdown (fd, SHUT_WR);
    for (int i = 0; i < 16 && fd_wait (fd, POLLIN, wait_ms) > 0; i++)
        if (recv (fd, dropped, sizeof dropped, MSG_DONTWAIT) <= 0)
            break;
}

int
fd_lift (int fd, int lowest)
{
    if (fd < 0 || fd >= lowest)
        return fd;
    int high = fcntl (fd, F_DUPFD_CLOEXEC, lowest);
    int fault = errno == EINVAL ? EMFILE : errno; /* the limit is no higher than <lowest> */
    close (fd);
    errno = fault;
    return high;
}

bool
fd_set_cloexec (int fd, bool on)
{
    int flags = fcntl (fd, F_GETFD);
    return flags >= 0 && fcntl (fd, F_SETFD, on ? flags | FD_CLOEXEC : flags & ~FD_CLOEXEC) == 0;
}
