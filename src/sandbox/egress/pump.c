/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/egress/pump.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

bool
pump_once (int from_fd, int to_fd, struct pipe_buffer *b, bool *has_moved)
{
    if (! b->is_finished && b->end < PIPE_BUFFER_BYTES) {
        ssize_t n = read (from_fd, b->bytes + b->end, PIPE_BUFFER_BYTES - b->end);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        if (n >= 0) {
            *has_moved = true;
            b->is_finished = n == 0;
            b->end += (size_t)n;
        }
    }
    if (b->start < b->end) {
        ssize_t n = send (to_fd, b->bytes + b->start, b->end - b->start, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        if (n > 0) {
            *has_moved = true;
            b->start += (size_t)n;
        }
    }
    if (b->start == b->end) {
        b->start = b->end = 0;
        if (b->is_finished && ! b->is_shut) {
            b->is_shut = true;
            shutdown (to_fd, SHUT_WR);
        }
    }
    return true;
}

void
pipe_buffer_replace (struct pipe_buffer *b, size_t old_len, const char *bytes, size_t len)
{
    size_t rest = b->end - b->start - old_len;
    memmove (b->bytes + len, b->bytes + b->start + old_len, rest);
    if (len)
        memcpy (b->bytes, bytes, len);
    b->start = 0;
    b->end = len + rest;
}
