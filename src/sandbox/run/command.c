/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/run/command.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "sandbox/run/command_internal.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#define STOP_TERM_MS 2000
#define STOP_KILL_MS 3000

bool
command_signal_group (const struct command *c, int signal_number)
{
    return c->state != COMMAND_EXITED && c->pid > 1 && kill (-c->pid, signal_number) == 0;
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
    if (c->input.fd >= 0)
        close (c->input.fd);
    if (c->pidfd >= 0)
        close (c->pidfd);
    if (c->log.fd >= 0)
        close (c->log.fd);
    buf_free (&c->input.bytes);
    buf_free (&c->log.tail);
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
                                .was_stopped = c->was_stopped,
                                .refused_calls = c->refused_calls };
    pthread_mutex_unlock (&c->all->lock);
    return r;
}

void
command_kill (struct command *c)
{
    pthread_mutex_lock (&c->all->lock);
    command_signal_group (c, SIGKILL);
    pthread_mutex_unlock (&c->all->lock);
}

bool
command_stop (struct command *c)
{
    pthread_mutex_lock (&c->all->lock);
    if (c->state != COMMAND_EXITED) {
        c->was_stopped = true;
        command_signal_group (c, SIGTERM);
    }
    bool has_exited = wait_until (c, clock_monotonic_ms () + STOP_TERM_MS, NULL);
    if (! has_exited) {
        command_signal_group (c, SIGKILL);
        has_exited = wait_until (c, clock_monotonic_ms () + STOP_KILL_MS, NULL);
    }
    pthread_mutex_unlock (&c->all->lock);
    return has_exited;
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
