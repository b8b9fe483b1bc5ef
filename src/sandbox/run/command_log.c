/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/run/command_log.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fdio.h"
#include "fs/root.h"
#include "sandbox/run/command_output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static bool
copy_stream (int to_fd, const struct command_stream *s)
{
    char chunk[16384];
    if (s->spill_fd < 0)
        return fd_write_all (to_fd, s->kept.data, s->kept.len);
    for (off_t at = 0;;) {
        ssize_t n = pread (s->spill_fd, chunk, sizeof chunk, at);
        if (n <= 0)
            return n == 0;
        if (! fd_write_all (to_fd, chunk, (size_t)n))
            return false;
        at += n;
    }
}

static int
open_log (struct commands *all, const char *name, struct mur_error **err)
{
    if (! fs_make_dirs (all->records, "logs", 0777, false, err))
        return -1;
    return fs_open_append (all->records, name, 0666, err);
}

char *
command_write_log (struct command *c, struct mur_error **err)
{
    _cleanup_free_ char *name =
        x_asprintf ("logs/shell-%llu.log", (unsigned long long)clock_unix_ms ());
    _cleanup_close_ int fd = open_log (c->all, name, err);
    if (fd < 0)
        return NULL;
    _cleanup_free_ char *head =
        x_asprintf ("Command: %s\nExit code: %d\n\nStdout:\n", c->line, c->exit_code);
    if (! fd_write_all (fd, head, strlen (head)) || ! copy_stream (fd, &c->streams[0].s) ||
        ! fd_write_all (fd, "\nStderr:\n", 9) || ! copy_stream (fd, &c->streams[1].s))
        return mur_fail_errno (err, E_IO_003, "cannot write %s", name), NULL;
    return steal_ptr (&name);
}

bool
command_detach (struct command *c, const char *work_id, struct mur_error **err)
{
    _cleanup_free_ char *name = x_asprintf ("logs/%s.log", work_id);
    _cleanup_close_ int fd = open_log (c->all, name, err);
    if (fd < 0)
        return false;
    _cleanup_free_ char *head = x_asprintf ("Command: %s\n\n", c->line);
    pthread_mutex_lock (&c->all->lock);
    bool is_written = fd_write_all (fd, head, strlen (head));
    for (int i = 0; i < 2 && is_written; i++) {
        struct command_stream *s = &c->streams[i].s;
        is_written = copy_stream (fd, s);
        command_keep_tail (&c->log.tail, s->kept.data, s->kept.len);
        if (s->spill_fd >= 0)
            close (s->spill_fd);
        s->spill_fd = -1;
    }
    if (is_written) {
        c->log.header_bytes = strlen (head);
        c->log.bytes = strlen (head) + c->streams[0].s.total_bytes + c->streams[1].s.total_bytes;
        if (c->state != COMMAND_EXITED)
            c->log.fd = steal_fd (&fd);
    }
    pthread_mutex_unlock (&c->all->lock);
    return is_written || mur_fail_errno (err, E_IO_003, "cannot write %s", name);
}

uint64_t
command_log_bytes (struct command *c)
{
    pthread_mutex_lock (&c->all->lock);
    uint64_t bytes = c->log.bytes;
    pthread_mutex_unlock (&c->all->lock);
    return bytes;
}

char *
command_tail (struct command *c, uint64_t *output_bytes)
{
    pthread_mutex_lock (&c->all->lock);
    size_t start = c->log.tail.len > COMMAND_KEPT_BYTES ? c->log.tail.len - COMMAND_KEPT_BYTES : 0;
    while (start && start < c->log.tail.len &&
           ((unsigned char)c->log.tail.data[start] & 0xc0) == 0x80)
        start++;
    char *tail =
        x_strndup (c->log.tail.data ? c->log.tail.data + start : "", c->log.tail.len - start);
    *output_bytes = c->streams[0].s.total_bytes + c->streams[1].s.total_bytes;
    pthread_mutex_unlock (&c->all->lock);
    return tail;
}

void
command_append_stream (struct buf *out, const char *title, const struct command_stream *stream)
{
    size_t len = stream->kept.len;
    if (stream->total_bytes > len)
        len = utf8_cut (stream->kept.data, len, len - 1);
    buf_printf (out, "\n%s:\n", title);
    buf_append (out, stream->kept.data ? stream->kept.data : "", len);
}
