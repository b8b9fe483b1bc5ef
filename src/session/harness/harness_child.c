/* SPDX-License-Identifier: Apache-2.0 */
#include "session/harness/harness_child.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fdio.h"
#include "sandbox/run/confinement.h"
#include "session/harness/harness_walls.h"
#include "session/state/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define READ_BYTES 65536

/* --- start --- */

/* Both ends; ours does not block. */
static bool
make_pipe (int pair[2], int ours, struct mur_error **err)
{
    if (pipe2 (pair, O_CLOEXEC) < 0)
        return mur_fail_errno (err, E_IO_003, "cannot make a pipe");
    fcntl (pair[ours], F_SETFL, O_NONBLOCK);
    return true;
}

static void
publish (struct session *s, pid_t pid)
{
    pthread_mutex_lock (&s->rooms.harness->lock);
    s->rooms.harness->pid = pid;
    pthread_mutex_unlock (&s->rooms.harness->lock);
}

/* In the walls of the session's commands. */
static bool
start_confined (struct session *s, char *const *argv, char *const *env, const int streams[3],
                struct bare_child *out, struct mur_error **err)
{
    const struct confined_program program = { .path = s->rooms.harness->real_binary,
                                              .argv = argv,
                                              .env = env,
                                              .stdin_fd = streams[0],
                                              .stdout_fd = streams[1],
                                              .stderr_fd = streams[2],
                                              .closure = &s->rooms.harness->closure };
    struct spawned spawned;
    if (! confinement_spawn (confine_confinement (s), &program, &spawned, err))
        return false;
    *out = (struct bare_child){ spawned.pid, spawned.pidfd };
    return true;
}

bool
harness_child_start (struct session *s, char *const *argv, char *const *env,
                     struct harness_child *c, struct mur_error **err)
{
    int in[2] = { -1, -1 }, out[2] = { -1, -1 }, errors[2] = { -1, -1 };
    *c = (struct harness_child){ .in_fd = -1, .out_fd = -1, .err_fd = -1 };
    bool is_good = make_pipe (in, 1, err) && make_pipe (out, 0, err) && make_pipe (errors, 0, err);
    const int streams[] = { in[0], out[1], errors[1] };
    if (is_good && harness_is_confined (s)) {
        is_good = start_confined (s, argv, env, streams, &c->process, err);
    } else if (is_good) {
        const struct bare_child_spec spec = { .path = s->rooms.harness->binary,
                                              .argv = argv,
                                              .env = env,
                                              .dir_fd = fs_root_fd (s->places.work),
                                              .stdin_fd = in[0],
                                              .stdout_fd = out[1],
                                              .stderr_fd = errors[1] };
        is_good = bare_child_start (&spec, &c->process, err);
    }
    int theirs[] = { in[0], out[1], errors[1] };
    for (size_t i = 0; i < ARRAY_LEN (theirs); i++)
        if (theirs[i] >= 0)
            close (theirs[i]);
    c->in_fd = in[1];
    c->out_fd = out[0];
    c->err_fd = errors[0];
    c->is_started = is_good;
    c->started_ms = clock_monotonic_ms ();
    if (is_good)
        publish (s, c->process.pid);
    return is_good;
}

/* --- input and output --- */

static void
close_fd (int *fd)
{
    if (*fd >= 0)
        close (*fd);
    *fd = -1;
}

static void
write_input (struct harness_child *c)
{
    while (c->in_fd >= 0 && c->input_at < c->input.len) {
        ssize_t n = write (c->in_fd, c->input.data + c->input_at, c->input.len - c->input_at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0) { /* it does not want the rest */
            close_fd (&c->in_fd);
            return;
        }
        c->input_at += (size_t)n;
    }
    if (c->closes_input)
        close_fd (&c->in_fd);
}

void
harness_child_write (struct harness_child *c, const char *data, size_t len)
{
    buf_append (&c->input, data, len);
    write_input (c);
}

void
harness_child_end_input (struct harness_child *c)
{
    c->closes_input = true;
    write_input (c);
}

/* Reads what is there. False once there will be no more. */
static bool
read_some (int fd, struct buf *to)
{
    ssize_t n = read (fd, buf_reserve (to, READ_BYTES), READ_BYTES);
    if (n > 0)
        to->len += (size_t)n;
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static void
read_output (struct harness_child *c)
{
    /* What was handed out makes room first. */
    if (c->output_at) {
        memmove (c->output.data, c->output.data + c->output_at, c->output.len - c->output_at);
        buf_truncate (&c->output, c->output.len - c->output_at);
        c->output_at = 0;
    }
    size_t before = c->output.len;
    if (! read_some (c->out_fd, &c->output))
        close_fd (&c->out_fd);
    for (const char *at = c->output.data + before, *end = c->output.data + c->output.len;
         at < end && (at = memchr (at, '\n', (size_t)(end - at))); at++)
        c->whole_lines++;
    c->is_too_long = c->output.len > HARNESS_LINE_MAX && ! c->whole_lines;
}

static void
read_errors (struct harness_child *c)
{
    if (! read_some (c->err_fd, &c->errors)) {
        close_fd (&c->err_fd);
        if (c->errors.len && c->errors.data[c->errors.len - 1] != '\n')
            buf_putc (&c->errors, '\n'); /* the last line is a whole one too */
    }
    if (c->errors.len <= (size_t)4 * HARNESS_TAIL_MAX)
        return;
    size_t drop = c->errors.len - (size_t)2 * HARNESS_TAIL_MAX;
    memmove (c->errors.data, c->errors.data + drop, c->errors.len - drop);
    buf_truncate (&c->errors, c->errors.len - drop);
}

void
harness_child_pump (struct harness_child *c, int wake_fd, uint64_t timeout_ms)
{
    bool writes = c->in_fd >= 0 && c->input_at < c->input.len;
    /* Lines that wait to be handed out are read on only when they have been. */
    bool reads = c->out_fd >= 0 && c->output.len - c->output_at <= HARNESS_LINE_MAX;
    struct pollfd fds[] = {
        { .fd = reads ? c->out_fd : -1, .events = POLLIN },
        { .fd = c->err_fd, .events = POLLIN },
        { .fd = writes ? c->in_fd : -1, .events = POLLOUT },
        { .fd = wake_fd, .events = POLLIN },
        { .fd = c->has_exited ? -1 : c->process.pidfd, .events = POLLIN },
    };
    int wait_ms = timeout_ms > 3600000 ? 3600000 : (int)timeout_ms;
    if (poll (fds, ARRAY_LEN (fds), wait_ms) <= 0)
        return;
    if (fds[2].revents)
        write_input (c);
    if (fds[0].revents)
        read_output (c);
    if (fds[1].revents)
        read_errors (c);
    c->has_exited |= fds[4].revents != 0;
}

bool
harness_child_has_line (const struct harness_child *c)
{
    return c->whole_lines || (c->out_fd < 0 && c->output.len > c->output_at);
}

bool
harness_child_line (struct harness_child *c, const char **line, size_t *len)
{
    if (! harness_child_has_line (c))
        return false;
    const char *start = c->output.data + c->output_at;
    size_t left = c->output.len - c->output_at;
    const char *end = c->whole_lines ? memchr (start, '\n', left) : NULL;
    *line = start;
    *len = end ? (size_t)(end - start) : left;
    c->output_at += *len + (end ? 1 : 0);
    c->whole_lines -= end ? 1 : 0;
    if (*len && start[*len - 1] == '\r')
        --*len;
    return true;
}

bool
harness_child_is_at_end (const struct harness_child *c)
{
    return c->out_fd < 0 && ! harness_child_has_line (c);
}

bool
harness_child_has_said_all (const struct harness_child *c)
{
    struct pollfd out = { .fd = c->out_fd, .events = POLLIN };
    bool waits = c->out_fd >= 0 && poll (&out, 1, 0) > 0; /* its end, too */
    return harness_child_is_at_end (c) ||
           (c->has_exited && ! waits && ! harness_child_has_line (c));
}

const char *
harness_child_tail (const struct harness_child *c, size_t *len)
{
    const char *text = c->errors.data ? c->errors.data : "";
    *len = c->errors.len;
    if (*len <= HARNESS_TAIL_MAX)
        return text;
    const char *from = text + *len - HARNESS_TAIL_MAX;
    const char *line = memchr (from, '\n', HARNESS_TAIL_MAX);
    if (line && line + 1 < text + *len) /* one line alone is longer: its end is kept */
        from = line + 1;
    *len = (size_t)(text + *len - from);
    return from;
}

/* --- the end --- */

bool
harness_child_has_exited (const struct harness_child *c)
{
    return c->has_exited || c->is_reaped;
}

void
harness_child_signal (struct harness_child *c, int number)
{
    if (! c->is_reaped)
        kill (c->process.pid, number);
}

void
harness_child_kill (struct session *s, struct harness_child *c)
{
    if (c->is_reaped)
        return;
    c->was_killed = true;
    harness_kill (s);
}

void
harness_kill (struct session *s)
{
    if (! s->rooms.harness)
        return;
    pthread_mutex_lock (&s->rooms.harness->lock);
    if (s->rooms.harness->pid)
        killpg (s->rooms.harness->pid, SIGKILL);
    pthread_mutex_unlock (&s->rooms.harness->lock);
}

void
harness_child_reap (struct session *s, struct harness_child *c)
{
    if (! c->is_started || c->is_reaped)
        return;
    fd_wait (c->process.pidfd, POLLIN, -1);
    c->ended_ms = clock_monotonic_ms ();
    /* Whoever it left behind goes with it, while the group is still its own. */
    pthread_mutex_lock (&s->rooms.harness->lock);
    killpg (c->process.pid, SIGKILL);
    while (waitpid (c->process.pid, &c->status, 0) < 0 && errno == EINTR)
        ;
    s->rooms.harness->pid = 0;
    pthread_mutex_unlock (&s->rooms.harness->lock);
    c->is_reaped = true;
    close_fd (&c->process.pidfd);
}

void
harness_child_clear (struct session *s, struct harness_child *c)
{
    if (c->is_started && ! c->is_reaped) {
        harness_child_kill (s, c);
        harness_child_reap (s, c);
    }
    close_fd (&c->in_fd);
    close_fd (&c->out_fd);
    close_fd (&c->err_fd);
    buf_free (&c->input);
    buf_free (&c->output);
    buf_free (&c->errors);
    *c = (struct harness_child){ .in_fd = -1, .out_fd = -1, .err_fd = -1 };
}
