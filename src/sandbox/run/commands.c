/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/run/commands.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/condition.h"
#include "sandbox/run/command.h"
#include "sandbox/run/command_internal.h"
#include "sandbox/run/command_supervisor.h"
#include "sandbox/run/refused_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

struct commands *
commands_new (struct confinement *confinement, struct fs_root *records)
{
    struct commands *all = x_new0 (struct commands);
    all->confinement = confinement;
    all->records = records;
    all->epoll_fd = all->wake_fd = all->floor.timer_fd = -1;
    pthread_mutex_init (&all->lock, NULL);
    condition_init (&all->changed);
    return all;
}

void
commands_set_disk_floor (struct commands *all, const char *path, uint64_t bytes)
{
    all->floor.path = path;
    all->floor.bytes = bytes;
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
    int floor_fd = disk_floor_open (&all->floor);
    if (floor_fd >= 0 && ! watch (all, floor_fd, EPOLLIN))
        return mur_fail_errno (err, E_IO_003, "cannot start the supervisor of commands");
    int status = pthread_create (&all->thread, NULL, command_supervise, all);
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
        command_signal_group (c, SIGKILL);
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
    refused_calls_end (all);
    if (all->epoll_fd >= 0)
        close (all->epoll_fd);
    if (all->wake_fd >= 0)
        close (all->wake_fd);
    if (all->floor.timer_fd >= 0)
        close (all->floor.timer_fd);
    pthread_cond_destroy (&all->changed);
    pthread_mutex_destroy (&all->lock);
    free (all);
}

/* --- starting one --- */

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
                                        .nest = start->nest,
                                        .is_heard = true };
    struct spawned spawned;
    struct command *c = x_new0 (struct command);
    uint64_t started_ms = clock_monotonic_ms ();
    confinement_enter (all->confinement, &c->occupancy);
    if (! confinement_spawn (all->confinement, &program, &spawned, err)) {
        confinement_leave (all->confinement, &c->occupancy, 0, 0);
        free (c);
        return NULL;
    }
    atomic_init (&c->refs, 2); /* the list's and the caller's */
    c->all = all;
    c->line = x_strdup (start->line);
    c->pid = spawned.pid;
    c->pidfd = spawned.pidfd;
    c->started_ms = started_ms;
    c->log.fd = -1;
    c->streams[0] = (struct stream){ .s.spill_fd = -1, .fd = steal_fd (&out[0]) };
    c->streams[1] = (struct stream){ .s.spill_fd = -1, .fd = steal_fd (&err_pipe[0]) };
    c->input.fd = start->input ? steal_fd (&in[1]) : -1;
    if (start->input)
        buf_append (&c->input.bytes, start->input, start->input_len);
    pthread_mutex_lock (&all->lock);
    bool is_watched = ! all->is_ending && ensure_thread (all, err);
    if (is_watched) {
        for (int i = 0; i < 2; i++) {
            set_nonblocking (c->streams[i].fd);
            watch (all, c->streams[i].fd, EPOLLIN);
        }
        if (c->input.fd >= 0) {
            set_nonblocking (c->input.fd);
            watch (all, c->input.fd, EPOLLOUT);
        }
        watch (all, c->pidfd, EPOLLIN);
        c->next = all->running;
        all->running = c;
        disk_floor_begin (&all->floor);
        refused_calls_watch (all, c, spawned.listener_fd);
    }
    pthread_mutex_unlock (&all->lock);
    if (is_watched)
        return c;
    if (spawned.listener_fd >= 0)
        close (spawned.listener_fd);
    mur_fail (err, E_IO_003, "the session has ended: nothing more is started");
    kill (-c->pid, SIGKILL);
    waitpid (c->pid, NULL, 0);
    confinement_leave (all->confinement, &c->occupancy, 0, 0);
    c->state = COMMAND_EXITED;
    command_unref (c);
    command_unref (c);
    return NULL;
}
