/* SPDX-License-Identifier: Apache-2.0 */
#include "spawn/child/output.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/condition.h"
#include "base/diag.h"
#include "base/fdio.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>

#define LINE_LIMIT  ((size_t)1 << 20) /* of the readiness line; a longer one is no line */
#define KEPT_BYTES  ((size_t)4 << 10) /* of a line of the tail: others read it, models too */
#define CUT_MARK    " […]"
#define PIECE_BYTES 16384

struct output {
    int out_fd, err_fd, stop_fd; /* the pipes are the thread's; -1 once they ended */
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t has_news;
    struct buf first; /* of stdout, until its line is whole */
    bool has_first, out_ended, err_ended, is_left;
    struct buf part;               /* of stderr: a line not yet ended */
    struct buf out_part;           /* of a member's stdout after its first line */
    char *member;                  /* NULL: no member of a formation */
    char *tail[OUTPUT_TAIL_LINES]; /* a ring */
    size_t tail_count;             /* ever */
};

static void
print_line (const struct output *o, const char *line)
{
    if (o->member)
        diag_stderr_line ("[%s] %s", o->member, line);
    else
        diag_stderr_line ("%s", line);
}

/* Whole lines of what was gathered; all of it at the end or when a line has no end. */
static void
print_lines (struct output *o, struct buf *part, bool is_over)
{
    char *from = part->data, *end;
    while (from && (end = strchr (from, '\n'))) {
        *end = '\0';
        print_line (o, from);
        from = end + 1;
    }
    size_t left = from ? part->len - (size_t)(from - part->data) : 0;
    if (left && (is_over || left > LINE_LIMIT)) {
        print_line (o, from);
        left = 0;
    }
    if (from && left)
        memmove (part->data, from, left);
    if (part->data)
        buf_truncate (part, left);
}

/* Our stdout may be gone: then it is as if it had been written. */
static void
relay (struct output *o, const char *data, size_t len)
{
    if (! len)
        return;
    if (! o->member) {
        fd_write_all (STDOUT_FILENO, data, len);
        return;
    }
    for (size_t i = 0; i < len; i++)
        if (data[i])
            buf_putc (&o->out_part, data[i]);
    print_lines (o, &o->out_part, false);
}

static void
take_stdout (struct output *o, const char *data, size_t len)
{
    if (o->has_first) {
        relay (o, data, len);
        return;
    }
    const char *end = memchr (data, '\n', len);
    size_t taken = end ? (size_t)(end - data) : len;
    pthread_mutex_lock (&o->lock);
    buf_append (&o->first, data, taken);
    o->has_first = end || o->first.len > LINE_LIMIT;
    if (o->has_first)
        pthread_cond_broadcast (&o->has_news);
    pthread_mutex_unlock (&o->lock);
    if (end)
        relay (o, end + 1, len - taken - 1);
}

static void
keep_line (struct output *o)
{
    size_t len = o->part.len;
    char *line = buf_steal (&o->part);
    print_line (o, line);
    if (len > KEPT_BYTES) {
        char *cut = x_asprintf ("%.*s" CUT_MARK, (int)utf8_cut (line, len, KEPT_BYTES), line);
        free (line);
        line = cut;
    }
    char **place = &o->tail[o->tail_count++ % OUTPUT_TAIL_LINES];
    free (*place);
    *place = line;
}

static void
take_stderr (struct output *o, const char *data, size_t len)
{
    pthread_mutex_lock (&o->lock);
    for (size_t i = 0; i < len; i++)
        if (data[i] == '\n')
            keep_line (o);
        else if (data[i])
            buf_putc (&o->part, data[i]);
    if (o->part.len > LINE_LIMIT)
        keep_line (o);
    pthread_mutex_unlock (&o->lock);
}

static void
note_end (struct output *o, bool *which)
{
    pthread_mutex_lock (&o->lock);
    *which = true;
    if (o->err_ended && o->part.len)
        keep_line (o);
    if (o->out_ended)
        print_lines (o, &o->out_part, true);
    pthread_cond_broadcast (&o->has_news);
    pthread_mutex_unlock (&o->lock);
}

/* Reads once. False when the stream gave nothing: ended (then closed), or empty for now. */
static bool
drain_once (struct output *o, int *fd, void (*take) (struct output *, const char *, size_t),
            bool *ended)
{
    char piece[PIECE_BYTES];
    ssize_t n = read (*fd, piece, sizeof piece);
    if (n > 0) {
        take (o, piece, (size_t)n);
        return true;
    }
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return errno == EINTR;
    close (steal_fd (fd));
    note_end (o, ended);
    return false;
}

static void *
drain (void *arg)
{
    struct output *o = arg;
    while (o->out_fd >= 0 || o->err_fd >= 0) {
        struct pollfd fds[] = { { o->out_fd, POLLIN, 0 },
                                { o->err_fd, POLLIN, 0 },
                                { o->stop_fd, POLLIN, 0 } };
        if (poll (fds, ARRAY_LEN (fds), -1) < 0 && errno != EINTR)
            break;
        if (fds[0].revents)
            drain_once (o, &o->out_fd, take_stdout, &o->out_ended);
        if (fds[1].revents)
            drain_once (o, &o->err_fd, take_stderr, &o->err_ended);
        if (fds[2].revents) {
            /* The child is gone; a survivor of it may still hold the pipes, and write without end.
             */
            for (int i = 0; i < 64 && o->out_fd >= 0; i++)
                if (! drain_once (o, &o->out_fd, take_stdout, &o->out_ended))
                    break;
            for (int i = 0; i < 64 && o->err_fd >= 0; i++)
                if (! drain_once (o, &o->err_fd, take_stderr, &o->err_ended))
                    break;
            break;
        }
    }
    return NULL;
}

static void
release (struct output *o)
{
    const int fds[] = { o->out_fd, o->err_fd, o->stop_fd };
    for (size_t i = 0; i < ARRAY_LEN (fds); i++)
        if (fds[i] >= 0)
            close (fds[i]);
    if (o->first.data) /* tokens may be in it */
        explicit_bzero (o->first.data, o->first.len);
    buf_free (&o->first);
    buf_free (&o->part);
    buf_free (&o->out_part);
    free (o->member);
    for (size_t i = 0; i < OUTPUT_TAIL_LINES; i++)
        free (o->tail[i]);
    pthread_cond_destroy (&o->has_news);
    pthread_mutex_destroy (&o->lock);
    free (o);
}

struct output *
output_new (int stdout_fd, int stderr_fd, struct mur_error **err)
{
    return output_new_of_member (stdout_fd, stderr_fd, NULL, err);
}

struct output *
output_new_of_member (int stdout_fd, int stderr_fd, const char *member, struct mur_error **err)
{
    struct output *o = x_new0 (struct output);
    condition_init (&o->has_news);
    pthread_mutex_init (&o->lock, NULL);
    o->member = member ? x_strdup (member) : NULL;
    o->out_fd = stdout_fd;
    o->err_fd = stderr_fd;
    o->stop_fd = eventfd (0, EFD_CLOEXEC);
    fcntl (stdout_fd, F_SETFL, O_NONBLOCK);
    fcntl (stderr_fd, F_SETFL, O_NONBLOCK);
    int failed = o->stop_fd < 0 ? errno : thread_start (&o->thread, drain, o);
    if (! failed)
        return o;
    errno = failed;
    mur_fail_errno (err, E_IO_003, "cannot watch what the child writes");
    release (o);
    return NULL;
}

void
output_free (struct output *o)
{
    if (! o)
        return;
    eventfd_write (o->stop_fd, 1);
    pthread_join (o->thread, NULL);
    release (o);
}

/* Waits for news until the deadline, under the lock. False when time is up. */
static bool
wait_until (struct output *o, uint64_t deadline_ms)
{
    struct timespec at = { (time_t)(deadline_ms / 1000), (long)(deadline_ms % 1000) * 1000000 };
    return pthread_cond_timedwait (&o->has_news, &o->lock, &at) != ETIMEDOUT;
}

enum output_line
output_first_line (struct output *o, uint64_t deadline_ms, char **line)
{
    pthread_mutex_lock (&o->lock);
    while (! o->has_first && ! o->out_ended && ! o->is_left && wait_until (o, deadline_ms))
        ;
    enum output_line found = o->has_first   ? OUTPUT_LINE
                             : o->out_ended ? OUTPUT_ENDED
                             : o->is_left   ? OUTPUT_LEFT
                                            : OUTPUT_TIMEOUT;
    if (found == OUTPUT_LINE)
        *line = buf_steal (&o->first);
    pthread_mutex_unlock (&o->lock);
    return found;
}

void
output_leave (struct output *o)
{
    pthread_mutex_lock (&o->lock);
    o->is_left = true;
    pthread_cond_broadcast (&o->has_news);
    pthread_mutex_unlock (&o->lock);
}

char *
output_stderr_tail (struct output *o, uint64_t wait_ms)
{
    struct buf text = { 0 };
    uint64_t deadline_ms = clock_monotonic_ms () + wait_ms;
    pthread_mutex_lock (&o->lock);
    while (wait_ms && ! o->err_ended && wait_until (o, deadline_ms))
        ;
    size_t from = o->tail_count > OUTPUT_TAIL_LINES ? o->tail_count - OUTPUT_TAIL_LINES : 0;
    for (size_t i = from; i < o->tail_count; i++)
        buf_printf (&text, "%s%s", i > from ? "\n" : "", o->tail[i % OUTPUT_TAIL_LINES]);
    pthread_mutex_unlock (&o->lock);
    return buf_steal (&text);
}
