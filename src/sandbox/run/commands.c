/* SPDX-License-Identifier: Apache-2.0
 *
 * The supervisor of a session's commands. See commands.h.
 *
 * One thread, one epoll: for each command its pidfd and its two pipes, and an eventfd to be woken
 * by. Times are computed from the commands' states; there is one timer, the epoll's own timeout.
 * Every command belongs to the list until it is COMMAND_EXITED; the lock guards the list and every
 * command's fields but its immutable ones.
 */
#include "sandbox/run/commands.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/condition.h"
#include "base/fdio.h"
#include "base/ids.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#define DRAIN_MS     1000 /* pipes may stay open this long after the leader */
#define KILLED_MS    2000 /* and this long after their holders were killed */
#define STOP_TERM_MS 2000
#define STOP_KILL_MS 3000
#define READ_BYTES   65536

struct stream {
    struct command_stream s;
    int fd; /* our end of the pipe, -1 once closed */
};

struct command {
    atomic_uint refs;
    struct commands *all;
    struct command *next;
    char *line;
    pid_t pid;
    int pidfd;
    enum command_state state;
    bool leader_is_gone; /* seen, not yet reaped */
    struct stream streams[2];
    int input_fd; /* -1 once everything was written */
    struct buf input;
    size_t input_at;
    uint64_t started_ms, deadline_ms; /* of DRAINING and KILLING */
    uint64_t duration_ms;
    int exit_code, signal_number;
    bool was_stopped;
    enum command_leftover leftover;
    struct occupancy occupancy;
    const char *resource_limit;
    command_exit_fn *on_exit; /* NULL: nobody asked */
    void *on_exit_ctx;
    /* in the background */
    int log_fd; /* -1: in the foreground */
    uint64_t log_bytes, log_header_bytes;
    bool is_log_cut;
    struct buf tail; /* at least the last COMMAND_KEPT_BYTES */
};

struct commands {
    struct confinement *confinement;
    struct fs_root *records;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct command *running;
    int epoll_fd, wake_fd;
    pthread_t thread;
    bool has_thread, is_ending;
};

/* --- output --- */

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
    size_t room = limit > c->log_bytes ? (size_t)(limit - c->log_bytes) : 0;
    size_t kept = len < room ? len : room;
    c->is_log_cut |= kept < len;
    if (kept && fd_write_all (c->log_fd, data, kept))
        c->log_bytes += kept;
}

static void
keep_tail (struct buf *tail, const char *data, size_t len)
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
    if (c->log_fd >= 0) {
        write_log (c, data, len);
        keep_tail (&c->tail, data, len);
        return;
    }
    spill (c->all, s, data, len);
    size_t room = COMMAND_KEPT_BYTES - s->kept.len;
    buf_append (&s->kept, data, len < room ? len : room);
}

static void
close_stream (struct command *c, struct stream *s)
{
    if (s->fd < 0)
        return;
    epoll_ctl (c->all->epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
    close (s->fd);
    s->fd = -1;
}

/* Reads what is there, a bounded amount at a time so that one command cannot starve the others. */
static void
read_stream (struct command *c, struct stream *s)
{
    char data[READ_BYTES];
    if (s->fd < 0)
        return;
    ssize_t n = read (s->fd, data, sizeof data);
    if (n > 0)
        take_output (c, s, data, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        close_stream (c, s);
}

static void
close_input (struct command *c)
{
    if (c->input_fd < 0)
        return;
    epoll_ctl (c->all->epoll_fd, EPOLL_CTL_DEL, c->input_fd, NULL);
    close (c->input_fd);
    c->input_fd = -1;
    buf_free (&c->input);
}

static void
write_input (struct command *c)
{
    while (c->input_fd >= 0 && c->input_at < c->input.len) {
        ssize_t n = write (c->input_fd, c->input.data + c->input_at, c->input.len - c->input_at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0)
            break;
        c->input_at += (size_t)n;
    }
    close_input (c);
}

/* --- the states --- */

/* The group exists at least as long as its unreaped leader. */
static bool
signal_group (const struct command *c, int signal_number)
{
    return c->state != COMMAND_EXITED && c->pid > 1 && kill (-c->pid, signal_number) == 0;
}

static bool
pipes_are_closed (const struct command *c)
{
    return c->streams[0].fd < 0 && c->streams[1].fd < 0;
}

/* Reaps the leader; the result is final. Under the lock. */
static void
finish (struct command *c)
{
    siginfo_t info = { 0 };
    while (waitid (P_PID, (id_t)c->pid, &info, WEXITED) < 0 && errno == EINTR)
        ;
    c->signal_number = info.si_code == CLD_EXITED ? 0 : info.si_status;
    c->exit_code = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
    c->state = COMMAND_EXITED;
    c->duration_ms = clock_monotonic_ms () - c->started_ms;
    for (int i = 0; i < 2; i++)
        close_stream (c, &c->streams[i]);
    close_input (c);
    epoll_ctl (c->all->epoll_fd, EPOLL_CTL_DEL, c->pidfd, NULL);
    c->resource_limit = confinement_leave (c->all->confinement, &c->occupancy, c->signal_number);
    if (c->log_fd >= 0) {
        _cleanup_free_ char *end = x_asprintf (
            "%s\nExit code: %d\n",
            c->is_log_cut
                ? "\n(output beyond capabilities.resources.max_file_size_bytes was not kept)"
                : "",
            c->exit_code);
        if (fd_write_all (c->log_fd, end, strlen (end)))
            c->log_bytes += strlen (end);
        close (c->log_fd);
        c->log_fd = -1;
    }
    for (struct command **at = &c->all->running; *at; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            break;
        }
    pthread_cond_broadcast (&c->all->changed);
    if (c->on_exit)
        c->on_exit (c->on_exit_ctx);
    command_unref (c); /* the list's reference */
}

/* Moves one command on as far as it can go now. Returns the ms until it wants to be looked at
 * again, -1 for never. */
static int64_t
advance (struct command *c, uint64_t now)
{
    if (c->state == COMMAND_RUNNING) {
        siginfo_t info = { 0 };
        if (waitid (P_PIDFD, (id_t)c->pidfd, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
            info.si_pid == 0)
            return -1;
        /* What is in the pipes now was written before the exit. */
        for (int i = 0; i < 2; i++)
            read_stream (c, &c->streams[i]);
        epoll_ctl (c->all->epoll_fd, EPOLL_CTL_DEL, c->pidfd, NULL);
        c->leader_is_gone = true;
        c->state = COMMAND_DRAINING;
        c->deadline_ms = now + DRAIN_MS;
    }
    if (pipes_are_closed (c)) {
        finish (c);
        return -1;
    }
    if (now < c->deadline_ms)
        return (int64_t)(c->deadline_ms - now);
    if (c->state == COMMAND_DRAINING) {
        c->leftover = signal_group (c, SIGKILL) ? LEFTOVER_KILLED : LEFTOVER_ESCAPED;
        c->state = COMMAND_KILLING;
        c->deadline_ms = now + KILLED_MS;
        return KILLED_MS;
    }
    c->leftover = LEFTOVER_ESCAPED;
    finish (c);
    return -1;
}

/* --- the thread --- */

/* The command that owns a descriptor, NULL when it is gone: an event may be older than a close. */
static struct command *
owner_of (struct commands *all, int fd, struct stream **stream)
{
    *stream = NULL;
    for (struct command *c = all->running; c; c = c->next) {
        for (int i = 0; i < 2; i++)
            if (c->streams[i].fd == fd) {
                *stream = &c->streams[i];
                return c;
            }
        if (c->pidfd == fd || c->input_fd == fd)
            return c;
    }
    return NULL;
}

static void
handle (struct commands *all, int fd)
{
    struct stream *stream;
    struct command *c = owner_of (all, fd, &stream);
    if (stream)
        read_stream (c, stream);
    else if (c && fd == c->input_fd)
        write_input (c);
}

static void *
supervise (void *arg)
{
    struct commands *all = arg;
    struct epoll_event events[32];
    int64_t wait_ms = -1;
    pthread_setname_np (pthread_self (), "mur-commands");
    for (;;) {
        int n = epoll_wait (all->epoll_fd, events, ARRAY_LEN (events), (int)wait_ms);
        pthread_mutex_lock (&all->lock);
        for (int i = 0; i < n; i++) {
            eventfd_t count;
            if (events[i].data.fd == all->wake_fd)
                eventfd_read (all->wake_fd, &count);
            else
                handle (all, events[i].data.fd);
        }
        uint64_t now = clock_monotonic_ms ();
        wait_ms = -1;
        for (struct command *c = all->running, *next; c; c = next) {
            next = c->next;
            int64_t want = advance (c, now);
            if (want >= 0 && (wait_ms < 0 || want < wait_ms))
                wait_ms = want;
        }
        bool is_done = all->is_ending && ! all->running;
        pthread_mutex_unlock (&all->lock);
        if (is_done)
            return NULL;
    }
}

struct commands *
commands_new (struct confinement *confinement, struct fs_root *records)
{
    struct commands *all = x_new0 (struct commands);
    all->confinement = confinement;
    all->records = records;
    all->epoll_fd = all->wake_fd = -1;
    pthread_mutex_init (&all->lock, NULL);
    condition_init (&all->changed);
    return all;
}

static bool
watch (struct commands *all, int fd, uint32_t events)
{
    struct epoll_event e = { .events = events, .data.fd = fd };
    return epoll_ctl (all->epoll_fd, EPOLL_CTL_ADD, fd, &e) == 0;
}

/* Under the lock. */
static bool
ensure_thread (struct commands *all, struct mur_error **err)
{
    if (all->has_thread)
        return true;
    if (all->epoll_fd < 0)
        all->epoll_fd = epoll_create1 (EPOLL_CLOEXEC);
    if (all->wake_fd < 0) {
        all->wake_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (all->epoll_fd < 0 || all->wake_fd < 0 || ! watch (all, all->wake_fd, EPOLLIN))
            return mur_fail_errno (err, E_IO_003, "cannot start the supervisor of commands");
    }
    int status = pthread_create (&all->thread, NULL, supervise, all);
    errno = status;
    if (status != 0)
        return mur_fail_errno (err, E_IO_003, "cannot start the supervisor of commands");
    all->has_thread = true;
    return true;
}

void
commands_kill_all (struct commands *all)
{
    if (! all)
        return;
    pthread_mutex_lock (&all->lock);
    for (struct command *c = all->running; c; c = c->next)
        signal_group (c, SIGKILL);
    pthread_mutex_unlock (&all->lock);
    confinement_kill_all (all->confinement);
}

void
commands_free (struct commands *all)
{
    if (! all)
        return;
    pthread_mutex_lock (&all->lock);
    all->is_ending = true;
    pthread_mutex_unlock (&all->lock);
    commands_kill_all (all);
    if (all->has_thread) {
        eventfd_write (all->wake_fd, 1);
        pthread_join (all->thread, NULL);
    }
    if (all->epoll_fd >= 0)
        close (all->epoll_fd);
    if (all->wake_fd >= 0)
        close (all->wake_fd);
    pthread_cond_destroy (&all->changed);
    pthread_mutex_destroy (&all->lock);
    free (all);
}

/* --- one command --- */

static void
close_pair (int (*pair)[2])
{
    for (int i = 0; i < 2; i++)
        if ((*pair)[i] >= 0)
            close ((*pair)[i]);
}

static void
set_nonblocking (int fd)
{
    fcntl (fd, F_SETFL, fcntl (fd, F_GETFL) | O_NONBLOCK);
}

static bool
open_pipes (const struct command_start *start, int in[2], int out[2], int err_pipe[2],
            struct mur_error **err)
{
    bool is_open = pipe2 (out, O_CLOEXEC) == 0 && pipe2 (err_pipe, O_CLOEXEC) == 0;
    if (is_open && start->input)
        is_open = pipe2 (in, O_CLOEXEC) == 0;
    else if (is_open)
        is_open = (in[0] = open ("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;
    return is_open || mur_fail_errno (err, E_IO_003, "cannot make the pipes of a command");
}

struct command *
command_start (struct commands *all, const struct command_start *start, struct mur_error **err)
{
    _cleanup_ (close_pair) int in[2] = { -1, -1 };
    _cleanup_ (close_pair) int out[2] = { -1, -1 };
    _cleanup_ (close_pair) int err_pipe[2] = { -1, -1 };
    if (! open_pipes (start, in, out, err_pipe, err))
        return NULL;
    struct confined_program program = { .path = start->path,
                                        .argv = start->argv,
                                        .env = start->env,
                                        .stdin_fd = in[0],
                                        .stdout_fd = out[1],
                                        .stderr_fd = err_pipe[1],
                                        .closure = start->closure,
                                        .nest = start->nest };
    struct spawned spawned;
    struct command *c = x_new0 (struct command);
    uint64_t started_ms = clock_monotonic_ms ();
    confinement_enter (all->confinement, &c->occupancy);
    if (! confinement_spawn (all->confinement, &program, &spawned, err)) {
        confinement_leave (all->confinement, &c->occupancy, 0);
        free (c);
        return NULL;
    }
    atomic_init (&c->refs, 2); /* the list's and the caller's */
    c->all = all;
    c->line = x_strdup (start->line);
    c->pid = spawned.pid;
    c->pidfd = spawned.pidfd;
    c->started_ms = started_ms;
    c->log_fd = -1;
    c->streams[0] = (struct stream){ .s.spill_fd = -1, .fd = steal_fd (&out[0]) };
    c->streams[1] = (struct stream){ .s.spill_fd = -1, .fd = steal_fd (&err_pipe[0]) };
    c->input_fd = start->input ? steal_fd (&in[1]) : -1;
    if (start->input)
        buf_append (&c->input, start->input, start->input_len);
    pthread_mutex_lock (&all->lock);
    bool is_watched = ! all->is_ending && ensure_thread (all, err);
    if (is_watched) {
        for (int i = 0; i < 2; i++) {
            set_nonblocking (c->streams[i].fd);
            watch (all, c->streams[i].fd, EPOLLIN);
        }
        if (c->input_fd >= 0) {
            set_nonblocking (c->input_fd);
            watch (all, c->input_fd, EPOLLOUT);
        }
        watch (all, c->pidfd, EPOLLIN);
        c->next = all->running;
        all->running = c;
    }
    pthread_mutex_unlock (&all->lock);
    if (is_watched)
        return c;
    mur_fail (err, E_IO_003, "the session has ended: nothing more is started");
    kill (-c->pid, SIGKILL);
    waitpid (c->pid, NULL, 0);
    confinement_leave (all->confinement, &c->occupancy, 0);
    c->state = COMMAND_EXITED;
    command_unref (c);
    command_unref (c);
    return NULL;
}

struct command *
command_ref (struct command *c)
{
    atomic_fetch_add (&c->refs, 1);
    return c;
}

void
command_unref (struct command *c)
{
    if (! c || atomic_fetch_sub (&c->refs, 1) != 1)
        return;
    for (int i = 0; i < 2; i++) {
        buf_free (&c->streams[i].s.kept);
        if (c->streams[i].s.spill_fd >= 0)
            close (c->streams[i].s.spill_fd);
        if (c->streams[i].fd >= 0)
            close (c->streams[i].fd);
    }
    if (c->input_fd >= 0)
        close (c->input_fd);
    if (c->pidfd >= 0)
        close (c->pidfd);
    if (c->log_fd >= 0)
        close (c->log_fd);
    buf_free (&c->input);
    buf_free (&c->tail);
    free (c->line);
    free (c);
}

static void
wake_waiters (void *ctx)
{
    struct commands *all = ctx;
    pthread_mutex_lock (&all->lock);
    pthread_cond_broadcast (&all->changed);
    pthread_mutex_unlock (&all->lock);
}

/* Waits under the lock until exited, the monotonic time has come, or the cancel was raised. */
static bool
wait_until (struct command *c, uint64_t end_ms, const struct cancel *cancel)
{
    struct timespec until = { .tv_sec = (time_t)(end_ms / 1000),
                              .tv_nsec = (long)(end_ms % 1000) * 1000000 };
    while (c->state != COMMAND_EXITED && ! cancel_is_raised (cancel)) {
        if (end_ms == UINT64_MAX)
            pthread_cond_wait (&c->all->changed, &c->all->lock);
        else if (pthread_cond_timedwait (&c->all->changed, &c->all->lock, &until) == ETIMEDOUT)
            break;
    }
    return c->state == COMMAND_EXITED;
}

bool
command_wait (struct command *c, int64_t grace_ms, struct cancel *cancel)
{
    uint64_t listener = cancel_add (cancel, wake_waiters, c->all);
    pthread_mutex_lock (&c->all->lock);
    uint64_t end = grace_ms < 0 ? UINT64_MAX : clock_monotonic_ms () + (uint64_t)grace_ms;
    bool has_exited = wait_until (c, end, cancel);
    pthread_mutex_unlock (&c->all->lock);
    cancel_remove (cancel, listener);
    return has_exited;
}

struct command_result
command_look (struct command *c)
{
    pthread_mutex_lock (&c->all->lock);
    struct command_result r = { .state = c->state,
                                .exit_code = c->exit_code,
                                .signal_number = c->signal_number,
                                .out = c->streams[0].s,
                                .err = c->streams[1].s,
                                .duration_ms = c->state == COMMAND_EXITED
                                                   ? c->duration_ms
                                                   : clock_monotonic_ms () - c->started_ms,
                                .resource_limit = c->resource_limit,
                                .leftover = c->leftover,
                                .was_stopped = c->was_stopped };
    pthread_mutex_unlock (&c->all->lock);
    return r;
}

void
command_kill (struct command *c)
{
    pthread_mutex_lock (&c->all->lock);
    signal_group (c, SIGKILL);
    pthread_mutex_unlock (&c->all->lock);
}

bool
command_stop (struct command *c)
{
    pthread_mutex_lock (&c->all->lock);
    if (c->state != COMMAND_EXITED) {
        c->was_stopped = true;
        signal_group (c, SIGTERM);
    }
    bool has_exited = wait_until (c, clock_monotonic_ms () + STOP_TERM_MS, NULL);
    if (! has_exited) {
        signal_group (c, SIGKILL);
        has_exited = wait_until (c, clock_monotonic_ms () + STOP_KILL_MS, NULL);
    }
    pthread_mutex_unlock (&c->all->lock);
    return has_exited;
}

/* --- logs --- */

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
        keep_tail (&c->tail, s->kept.data, s->kept.len);
        if (s->spill_fd >= 0)
            close (s->spill_fd);
        s->spill_fd = -1;
    }
    if (is_written) {
        c->log_header_bytes = strlen (head);
        c->log_bytes = strlen (head) + c->streams[0].s.total_bytes + c->streams[1].s.total_bytes;
        if (c->state != COMMAND_EXITED)
            c->log_fd = steal_fd (&fd);
    }
    pthread_mutex_unlock (&c->all->lock);
    return is_written || mur_fail_errno (err, E_IO_003, "cannot write %s", name);
}

void
command_on_exit (struct command *c, command_exit_fn *fn, void *ctx)
{
    pthread_mutex_lock (&c->all->lock);
    c->on_exit = fn;
    c->on_exit_ctx = ctx;
    if (c->state == COMMAND_EXITED)
        fn (ctx);
    pthread_mutex_unlock (&c->all->lock);
}

uint64_t
command_log_bytes (struct command *c)
{
    pthread_mutex_lock (&c->all->lock);
    uint64_t bytes = c->log_bytes;
    pthread_mutex_unlock (&c->all->lock);
    return bytes;
}

char *
command_tail (struct command *c, uint64_t *output_bytes)
{
    pthread_mutex_lock (&c->all->lock);
    size_t start = c->tail.len > COMMAND_KEPT_BYTES ? c->tail.len - COMMAND_KEPT_BYTES : 0;
    while (start && start < c->tail.len && ((unsigned char)c->tail.data[start] & 0xc0) == 0x80)
        start++;
    char *tail = x_strndup (c->tail.data ? c->tail.data + start : "", c->tail.len - start);
    *output_bytes = c->streams[0].s.total_bytes + c->streams[1].s.total_bytes;
    pthread_mutex_unlock (&c->all->lock);
    return tail;
}
