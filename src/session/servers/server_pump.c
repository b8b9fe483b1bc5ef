/* SPDX-License-Identifier: Apache-2.0
 *
 * A server as a process, and the thread that speaks with it: it drains what the server writes
 * whether anybody waits for it or not, writes what is queued, sees its end and kills what it left
 * behind.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/fdio.h"
#include "session/servers/server_internal.h"
#include "trace/lines/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#define READ_BYTES    65536
#define QUEUE_MAX     ((size_t)64 << 20)
#define TERM_AFTER_MS 1000 /* its input was closed, and it is still there */
#define KILL_AFTER_MS 1500

static void
close_fd (int *fd)
{
    if (*fd >= 0)
        close (*fd);
    *fd = -1;
}

/* --- what others want of it --- */

static void
wake (struct mcp_server *s)
{
    uint64_t one = 1;
    if (s->io.wake_fd >= 0)
        (void)! write (s->io.wake_fd, &one, sizeof one);
}

static void
queue (struct mcp_server *s, int64_t id, const char *method, const json_t *params, char *text)
{
    _cleanup_free_ char *taken = text;
    (void)id, (void)method, (void)params;
    if (s->io.queue.len > QUEUE_MAX) {
        server_condemn (s, E_MCP_005, "it does not read what it is sent");
        return;
    }
    buf_puts (&s->io.queue, taken);
    buf_putc (&s->io.queue, '\n');
    wake (s);
}

static void
drop (struct mcp_server *s, int64_t id, const char *reason)
{
    _cleanup_json_ json_t *params =
        json_pack ("{s:I, s:s}", "requestId", (json_int_t)id, "reason", reason);
    server_send_call (s, 0, "notifications/cancelled", params);
}

static void
kill_process (struct mcp_server *s)
{
    confinement_kill_all (s->walls.confinement);
    killpg (s->io.pid, SIGKILL);
}

/* A modern server tells of changes only to who listens. */
static void
listen_for_changes (struct mcp_server *s)
{
    if (s->client.revision->era != MCP_MODERN)
        return;
    _cleanup_json_ json_t *params = mcp_client_params (
        &s->client, json_pack ("{s:{s:b}}", "notifications", "toolsListChanged", 1), 0);
    server_send_call (s, s->next_id++, "subscriptions/listen", params);
}

/* --- streams --- */

static void
take_lines (struct mcp_server *s)
{
    const char *line;
    size_t len;
    for (enum mcp_line what;
         (what = mcp_lines_next (&s->io.lines, &line, &len)) != MCP_LINE_NONE;) {
        if (what == MCP_LINE_TOO_LONG)
            server_condemn (s, E_MCP_005, "it wrote a line of more than %zu MiB",
                            SERVER_LINE_MAX >> 20);
        else
            server_take_line (s, line, len);
    }
}

/* False once there will be no more. */
static bool
read_output (struct mcp_server *s)
{
    char data[READ_BYTES];
    ssize_t n = read (s->io.out_fd, data, sizeof data);
    if (n > 0) {
        mcp_lines_feed (&s->io.lines, data, (size_t)n);
        take_lines (s);
    }
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static void
keep_tail (struct mcp_server *s, const char *data, size_t len)
{
    buf_append (&s->io.tail, data, len);
    if (s->io.tail.len > (size_t)2 * SERVER_TAIL_MAX) {
        size_t drop = s->io.tail.len - SERVER_TAIL_MAX;
        memmove (s->io.tail.data, s->io.tail.data + drop, SERVER_TAIL_MAX);
        buf_truncate (&s->io.tail, SERVER_TAIL_MAX);
    }
    size_t room = SERVER_LOG_MAX - s->io.logged;
    size_t part = len < room ? len : room;
    if (s->io.log_fd >= 0 && part && fd_write_all (s->io.log_fd, data, part))
        s->io.logged += part;
}

static bool
read_errors (struct mcp_server *s)
{
    char data[READ_BYTES];
    ssize_t n = read (s->io.err_fd, data, sizeof data);
    if (n > 0)
        keep_tail (s, data, (size_t)n);
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static void
write_queue (struct mcp_server *s)
{
    size_t done = 0;
    while (done < s->io.queue.len) {
        ssize_t n = write (s->io.in_fd, s->io.queue.data + done, s->io.queue.len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 &&
            errno != EAGAIN) { /* it closed its input: its end will be seen, or a timeout */
            close_fd (&s->io.in_fd);
            done = s->io.queue.len;
        }
        if (n < 0)
            break;
        done += (size_t)n;
    }
    memmove (s->io.queue.data, s->io.queue.data + done, s->io.queue.len - done);
    buf_truncate (&s->io.queue, s->io.queue.len - done);
}

/* --- the end --- */

/* What is due of it, and how long until the next is. */
static int
end_step (struct mcp_server *s)
{
    if (! s->io.ending_ms)
        return -1;
    uint64_t passed = clock_monotonic_ms () - s->io.ending_ms;
    if (s->io.in_fd >= 0 && ! s->io.queue.len)
        close_fd (&s->io.in_fd);
    if (passed >= KILL_AFTER_MS) {
        confinement_kill_all (s->walls.confinement);
        killpg (s->io.pid, SIGKILL);
        return 100;
    }
    if (passed >= TERM_AFTER_MS) {
        if (! s->io.has_term)
            killpg (s->io.pid, SIGTERM);
        s->io.has_term = true;
        close_fd (&s->io.in_fd);
        return (int)(KILL_AFTER_MS - passed);
    }
    return (int)(TERM_AFTER_MS - passed);
}

static void
say_death (struct mcp_server *s, int status, const char *limit)
{
    if (s->io.death)
        return;
    s->io.death_code = E_MCP_001;
    if (limit)
        s->io.death = x_asprintf ("it was stopped by capabilities.resources.%s", limit);
    else if (WIFSIGNALED (status))
        s->io.death = x_asprintf ("it was ended by signal %d (%s)", WTERMSIG (status),
                                  strsignal (WTERMSIG (status)));
    else
        s->io.death = x_asprintf ("it exited with status %d", WEXITSTATUS (status));
}

static void
tell_trace (struct mcp_server *s, int status, bool was_asked)
{
    struct trace_writer *trace = s->setup.trace ? *s->setup.trace : NULL;
    _cleanup_free_ char *tail = was_asked ? NULL : server_stderr_tail (s);
    if (! trace)
        return;
    if (s->io.noise_lines)
        TRACE (trace, NULL, mcp_noise, .artifact = s->setup.artifact, .lines = s->io.noise_lines,
               .bytes = s->io.noise_bytes);
    TRACE (trace, NULL, mcp_server_exit, .artifact = s->setup.artifact,
           .cause = was_asked ? "asked to end" : s->io.death,
           .exit_code = WIFSIGNALED (status) ? TRACE_NUM (128 + WTERMSIG (status))
                                             : TRACE_NUM (WEXITSTATUS (status)),
           .stderr_tail = tail && *tail ? tail : NULL);
}

/* What is there already is read; what others hold open is not waited for. */
static void
drain (struct mcp_server *s)
{
    for (unsigned i = 0; i < 512 && s->io.out_fd >= 0; i++) {
        struct pollfd p = { .fd = s->io.out_fd, .events = POLLIN };
        if (poll (&p, 1, 0) <= 0 || ! read_output (s))
            break;
    }
    for (unsigned i = 0; i < 512 && s->io.err_fd >= 0; i++) {
        struct pollfd p = { .fd = s->io.err_fd, .events = POLLIN };
        if (poll (&p, 1, 0) <= 0 || ! read_errors (s))
            break;
    }
}

static void
forget_streams (struct mcp_server *s)
{
    close_fd (&s->io.in_fd);
    close_fd (&s->io.out_fd);
    close_fd (&s->io.err_fd);
    close_fd (&s->io.log_fd);
    close_fd (&s->io.wake_fd);
    close_fd (&s->io.pidfd);
    mcp_lines_clear (&s->io.lines);
    buf_free (&s->io.queue);
}

static void
finish (struct mcp_server *s, struct occupancy *occupancy)
{
    int status = 0;
    confinement_kill_all (s->walls.confinement);
    pthread_mutex_lock (&s->lock);
    drain (s);
    killpg (s->io.pid, SIGKILL); /* while the group is still its own */
    while (waitpid (s->io.pid, &status, 0) < 0 && errno == EINTR)
        ;
    bool was_asked = s->io.ending_ms && ! s->io.death;
    const char *limit = confinement_leave (
        s->walls.confinement, occupancy, WIFSIGNALED (status) ? WTERMSIG (status) : 0,
        WIFEXITED (status) ? WEXITSTATUS (status) : 128 + WTERMSIG (status));
    say_death (s, status, limit);
    tell_trace (s, status, was_asked);
    forget_streams (s);
    server_gone (s, was_asked);
    pthread_mutex_unlock (&s->lock);
}

/* --- the thread --- */

static void *
pump (void *arg)
{
    struct mcp_server *s = arg;
    struct occupancy occupancy;
    confinement_enter (s->walls.confinement, &occupancy);
    for (bool has_exited = false; ! has_exited;) {
        pthread_mutex_lock (&s->lock);
        int wait_ms = end_step (s);
        struct pollfd fds[] = {
            { .fd = s->io.out_fd, .events = POLLIN },
            { .fd = s->io.err_fd, .events = POLLIN },
            { .fd = s->io.queue.len ? s->io.in_fd : -1, .events = POLLOUT },
            { .fd = s->io.wake_fd, .events = POLLIN },
            { .fd = s->io.pidfd, .events = POLLIN },
        };
        pthread_mutex_unlock (&s->lock);
        if (poll (fds, ARRAY_LEN (fds), wait_ms) <= 0)
            continue;
        uint64_t news;
        pthread_mutex_lock (&s->lock);
        if (fds[3].revents)
            (void)! read (s->io.wake_fd, &news, sizeof news);
        if (fds[0].revents && ! read_output (s))
            close_fd (&s->io.out_fd);
        if (fds[1].revents && ! read_errors (s))
            close_fd (&s->io.err_fd);
        if (s->io.in_fd >= 0 && s->io.queue.len)
            write_queue (s);
        has_exited = fds[4].revents != 0;
        pthread_mutex_unlock (&s->lock);
    }
    finish (s, &occupancy);
    return NULL;
}

/* --- start --- */

static bool
spawn (struct mcp_server *s, const int streams[3], struct mur_error **err)
{
    const struct mcp_pinned *p = s->setup.pinned;
    struct server_walls *w = &s->walls;
    _cleanup_strv_ struct strv argv = { 0 };
    struct spawned spawned;
    size_t i;
    json_t *word;
    strv_push (&argv, w->name);
    json_array_foreach (p->flags, i, word) strv_push (&argv, json_string_value (word));
    strv_printf (&argv, "%s/%s", w->tree, p->entry);
    for (size_t k = 0; s->setup.args && s->setup.args[k]; k++)
        strv_push (&argv, s->setup.args[k]);
    const struct confined_program program = { .path = w->path,
                                              .argv = argv.items,
                                              .env = w->env.items,
                                              .stdin_fd = streams[0],
                                              .stdout_fd = streams[1],
                                              .stderr_fd = streams[2],
                                              .closure = &w->closure };
    if (! confinement_spawn (w->confinement, &program, &spawned, err))
        return mur_context (err, "server %s", s->setup.name);
    s->io.pid = spawned.pid;
    s->io.pidfd = spawned.pidfd;
    return true;
}

static void
begin_life (struct mcp_server *s)
{
    server_begin_life (s);
    s->io.lines = (struct mcp_lines){ .limit = SERVER_LINE_MAX };
    s->io.logged = 0;
    s->io.log_fd =
        s->setup.log_path
            ? open (s->setup.log_path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600)
            : -1;
}

static bool
start (struct mcp_server *s, struct mur_error **err)
{
    int pipes[3][2] = { { -1, -1 }, { -1, -1 }, { -1, -1 } };
    bool is_good = server_walls_make (s, err);
    for (size_t i = 0; i < ARRAY_LEN (pipes) && is_good; i++)
        if (pipe2 (pipes[i], O_CLOEXEC) < 0)
            is_good = mur_fail_errno (err, E_IO_003, "cannot make a pipe");
    const int streams[] = { pipes[0][0], pipes[1][1], pipes[2][1] };
    is_good = is_good && spawn (s, streams, err);
    for (size_t i = 0; i < ARRAY_LEN (streams); i++)
        if (streams[i] >= 0)
            close (streams[i]);
    int ours[] = { pipes[0][1], pipes[1][0], pipes[2][0] };
    for (size_t i = 0; i < ARRAY_LEN (ours); i++)
        if (ours[i] >= 0 && (! is_good || fcntl (ours[i], F_SETFL, O_NONBLOCK) < 0))
            close_fd (&ours[i]);
    if (! is_good)
        return false;
    pthread_mutex_lock (&s->lock);
    begin_life (s);
    s->io.in_fd = ours[0];
    s->io.out_fd = ours[1];
    s->io.err_fd = ours[2];
    s->io.wake_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
    s->state = SERVER_UP;
    if (s->is_over) /* it was told to end meanwhile */
        server_condemn (s, E_MCP_001, "the session ends");
    pthread_mutex_unlock (&s->lock);
    if (server_start_thread (s, pump, err))
        return true;
    struct occupancy none;
    confinement_enter (s->walls.confinement, &none);
    finish (s, &none);
    return false;
}

const struct server_way server_by_pipes = {
    .start = start,
    .send = queue,
    .drop = drop,
    .wake = wake,
    .kill = kill_process,
    .listen = listen_for_changes,
};
