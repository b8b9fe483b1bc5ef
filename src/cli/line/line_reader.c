/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/line/line_reader.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define LINE_LIMIT ((size_t)16 << 20)

/* More bytes. What ends it is LINE_OVER or LINE_INTERRUPTED. */
static enum line_end
read_more (struct line_reader *r)
{
    struct pollfd fds[] = { { .fd = r->fd, .events = POLLIN },
                            { .fd = r->signals_fd, .events = POLLIN } };
    while (poll (fds, 2, -1) < 0)
        if (errno != EINTR)
            return LINE_OVER;
    if (fds[1].revents)
        return LINE_INTERRUPTED;
    char piece[65536];
    ssize_t len = read (r->fd, piece, sizeof piece);
    if (len > 0 && r->waiting.len < LINE_LIMIT)
        buf_append (&r->waiting, piece, (size_t)len);
    else if (len >= 0 || errno != EINTR)
        r->is_over = true;
    return r->is_over ? LINE_OVER : LINE_READ;
}

/* Drops what was handed out. */
static void
make_room (struct line_reader *r)
{
    struct buf rest = { 0 };
    buf_append (&rest, r->waiting.data + r->at, r->waiting.len - r->at);
    buf_free (&r->waiting);
    r->waiting = rest;
    r->at = 0;
}

/* Takes a line that is there whole. False when more has to be read. */
static bool
take_line (struct line_reader *r, struct buf *line)
{
    while (r->waiting.len > r->at) {
        const char *start = r->waiting.data + r->at;
        const char *end = memchr (start, '\n', r->waiting.len - r->at);
        if (! end)
            return false;
        size_t len = (size_t)(end - start);
        r->at += len + 1;
        len -= len && start[len - 1] == '\r';
        bool goes_on = len && start[len - 1] == '\\';
        buf_append (line, start, len - goes_on);
        if (! goes_on)
            return true;
        buf_putc (line, '\n');
    }
    return false;
}

enum line_end
line_reader_next (struct line_reader *r, struct buf *line)
{
    while (! take_line (r, line)) {
        if (r->at)
            make_room (r);
        enum line_end more = r->is_over ? LINE_OVER : read_more (r);
        if (more == LINE_READ)
            continue;
        if (more == LINE_INTERRUPTED)
            return more;
        /* The last line may lack its end. */
        buf_append (line, r->waiting.data, r->waiting.len);
        buf_free (&r->waiting);
        r->waiting = (struct buf){ 0 };
        return line->len ? LINE_READ : LINE_OVER;
    }
    return LINE_READ;
}

void
line_reader_clear (struct line_reader *r)
{
    buf_free (&r->waiting);
}
