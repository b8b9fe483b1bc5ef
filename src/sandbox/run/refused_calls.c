/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/run/refused_calls.h"

#include "base/alloc.h"
#include "base/fdio.h"

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

struct call_watch {
    struct call_watch *next;
    struct command *command; /* referenced */
    int fd;
    unsigned answered;
};

static void
drop (const struct commands *all, struct call_watch **at)
{
    struct call_watch *w = *at;
    *at = w->next;
    /* Not left to close: a command just being started may hold a copy for a moment. */
    epoll_ctl (all->epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
    close (w->fd);
    command_unref (w->command);
    free (w);
}

void
refused_calls_watch (struct commands *all, struct command *c, int listener_fd)
{
    struct epoll_event e = { .events = EPOLLIN, .data.fd = listener_fd };
    if (listener_fd < 0)
        return;
    if (epoll_ctl (all->epoll_fd, EPOLL_CTL_ADD, listener_fd, &e) < 0) {
        close (listener_fd);
        return;
    }
    struct call_watch *w = x_new0 (struct call_watch);
    *w = (struct call_watch){ all->calls, command_ref (c), listener_fd, 0 };
    all->calls = w;
}

bool
refused_calls_handle (struct commands *all, int fd)
{
    struct call_watch **at = &all->calls;
    while (*at && (*at)->fd != fd)
        at = &(*at)->next;
    struct call_watch *w = *at;
    if (! w)
        return false;
    struct pollfd now = { .fd = fd, .events = POLLIN };
    /* Asked anew: an event may be older than what it tells of, and a receiver would wait. */
    bool is_useful = poll (&now, 1, 0) <= 0 || ! (now.revents & (POLLHUP | POLLERR));
    if (is_useful && (now.revents & POLLIN))
        is_useful = syscall_filter_answer (fd, &w->command->refused_calls) &&
                    ++w->answered < REFUSED_CALLS_MAX;
    if (! is_useful)
        drop (all, at);
    return true;
}

void
refused_calls_end (struct commands *all)
{
    while (all->calls)
        drop (all, &all->calls);
}
