/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/run/command_output.h"

#include "base/alloc.h"
#include "base/fdio.h"
#include "base/ids.h"
#include "fs/root.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define READ_BYTES 65536

/* A file without a name in the records directory: output lies on disk, where there is room for it,
 * and is gone with the last descriptor. */
static int
open_spill (const struct commands *all)
{
    char name[37];
    int dir = fs_root_fd (all->records);
    int fd = openat (dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    uuid_text (name);
    fd = openat (dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0)
        unlinkat (dir, name, 0);
    return fd;
}

static void
spill (const struct commands *all, struct command_stream *s, const char *data, size_t len)
{
    if (s->spill_fd < 0 && s->kept.len + len > COMMAND_KEPT_BYTES) {
        s->spill_fd = open_spill (all);
        if (s->spill_fd >= 0)
            (void)fd_write_all (s->spill_fd, s->kept.data, s->kept.len);
    }
    if (s->spill_fd >= 0 && s->total_bytes <= confinement_output_max (all->confinement))
        (void)fd_write_all (s->spill_fd, data, len);
}

/* A log is a file like those of commands, so it grows no further than theirs. */
static void
write_log (struct command *c, const char *data, size_t len)
{
    uint64_t limit = confinement_output_max (c->all->confinement);
    size_t room = limit > c->log.bytes ? (size_t)(limit - c->log.bytes) : 0;
    size_t kept = len < room ? len : room;
    c->log.is_cut |= kept < len;
    if (kept && fd_write_all (c->log.fd, data, kept))
        c->log.bytes += kept;
}

void
command_keep_tail (struct buf *tail, const char *data, size_t len)
{
    buf_append (tail, data, len);
    if (tail->len > 4 * COMMAND_KEPT_BYTES) {
        size_t cut = tail->len - COMMAND_KEPT_BYTES;
        memmove (tail->data, tail->data + cut, COMMAND_KEPT_BYTES);
        buf_truncate (tail, COMMAND_KEPT_BYTES);
    }
}

static void
take_output (struct command *c, struct stream *stream, const char *data, size_t len)
{
    struct command_stream *s = &stream->s;
    s->total_bytes += len;
    if (c->log.fd >= 0) {
        write_log (c, data, len);
        command_keep_tail (&c->log.tail, data, len);
        return;
    }
    spill (c->all, s, data, len);
    size_t room = COMMAND_KEPT_BYTES - s->kept.len;
    buf_append (&s->kept, data, len < room ? len : room);
}

void
command_close_stream (struct command *c, struct stream *s)
{
    if (s->fd < 0)
        return;
    epoll_ctl (c->all->epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
    close (s->fd);
    s->fd = -1;
}

void
command_read_stream (struct command *c, struct stream *s)
{
    char data[READ_BYTES];
    if (s->fd < 0)
        return;
    ssize_t n = read (s->fd, data, sizeof data);
    if (n > 0)
        take_output (c, s, data, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        command_close_stream (c, s);
}

void
command_close_input (struct command *c)
{
    if (c->input.fd < 0)
        return;
    epoll_ctl (c->all->epoll_fd, EPOLL_CTL_DEL, c->input.fd, NULL);
    close (c->input.fd);
    c->input.fd = -1;
    buf_free (&c->input.bytes);
}

void
command_write_input (struct command *c)
{
    while (c->input.fd >= 0 && c->input.at < c->input.bytes.len) {
        ssize_t n = write (c->input.fd, c->input.bytes.data + c->input.at,
                           c->input.bytes.len - c->input.at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0)
            break;
        c->input.at += (size_t)n;
    }
    command_close_input (c);
}
