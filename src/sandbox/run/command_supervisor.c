/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/run/command_supervisor.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fdio.h"
#include "sandbox/run/command.h"
#include "sandbox/run/command_output.h"
#include "sandbox/run/refused_calls.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define DRAIN_MS  1000 /* pipes may stay open this long after the leader */
#define KILLED_MS 2000 /* and this long after their holders were killed */

/* --- the states --- */

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
        command_close_stream (c, &c->streams[i]);
    command_close_input (c);
    epoll_ctl (c->all->epoll_fd, EPOLL_CTL_DEL, c->pidfd, NULL);
    const char *limit =
        confinement_leave (c->all->confinement, &c->occupancy, c->signal_number, c->exit_code);
    c->resource_limit = c->resource_limit ? c->resource_limit : limit;
    if (c->log.fd >= 0) {
        _cleanup_free_ char *end = x_asprintf (
            "%s\nExit code: %d\n",
            c->log.is_cut
                ? "\n(output beyond capabilities.resources.max_file_size_bytes was not kept)"
                : "",
            c->exit_code);
        if (fd_write_all (c->log.fd, end, strlen (end)))
            c->log.bytes += strlen (end);
        close (c->log.fd);
        c->log.fd = -1;
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
            command_read_stream (c, &c->streams[i]);
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
        c->leftover = command_signal_group (c, SIGKILL) ? LEFTOVER_KILLED : LEFTOVER_ESCAPED;
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
        if (c->pidfd == fd || c->input.fd == fd)
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
        command_read_stream (c, stream);
    else if (c && fd == c->input.fd)
        command_write_input (c);
}

/* Nothing that runs goes on writing while the disk has less than the floor. */
static void
watch_disk (struct commands *all)
{
    if (! disk_floor_is_passed (&all->floor, all->running != NULL))
        return;
    for (struct command *c = all->running; c; c = c->next)
        if (c->state == COMMAND_RUNNING && command_signal_group (c, SIGKILL))
            c->resource_limit = "free_disk_bytes";
}

void *
command_supervise (void *arg)
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
            else if (events[i].data.fd == all->floor.timer_fd)
                watch_disk (all);
            else if (! refused_calls_handle (all, events[i].data.fd))
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
