/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/line/watch_keys.h"

#include "base/alloc.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

/* Lives as long as the process: its thread reads until then. */
struct watch_keys {
    struct termios before;
    _Atomic bool is_changed;
    int signal_fd;
};

static void
take_terminal (struct watch_keys *k)
{
    struct termios raw = k->before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    /* In the background it would stop us. */
    if (tcgetpgrp (STDIN_FILENO) == getpgrp ())
        k->is_changed = tcsetattr (STDIN_FILENO, TCSANOW, &raw) == 0;
}

static void
give_back (struct watch_keys *k)
{
    if (k->is_changed)
        tcsetattr (STDIN_FILENO, TCSANOW, &k->before);
    k->is_changed = false;
}

static void
on_signal (struct watch_keys *k)
{
    struct signalfd_siginfo info;
    if (read (k->signal_fd, &info, sizeof info) != (ssize_t)sizeof info ||
        info.ssi_signo == SIGCONT)
        return;
    give_back (k);
    if (info.ssi_signo == SIGTSTP) {
        raise (SIGSTOP);
        take_terminal (k);
        return;
    }
    sigset_t one;
    sigemptyset (&one);
    sigaddset (&one, (int)info.ssi_signo);
    pthread_sigmask (SIG_UNBLOCK, &one, NULL);
    raise ((int)info.ssi_signo);
}

/* False: there are no more keys. */
static bool
on_key (struct watch_keys *k)
{
    char key;
    ssize_t len = read (STDIN_FILENO, &key, 1);
    if (len == 1 && (key == 'q' || key == 'Q')) {
        give_back (k);
        _exit (0);
    }
    return len == 1 || (len < 0 && errno == EINTR);
}

static void *
listen_thread (void *ctx)
{
    struct watch_keys *k = ctx;
    struct pollfd fds[] = { { .fd = k->signal_fd, .events = POLLIN },
                            { .fd = STDIN_FILENO, .events = POLLIN } };
    for (;;) {
        if (poll (fds, ARRAY_LEN (fds), -1) < 0)
            continue;
        if (fds[0].revents)
            on_signal (k);
        if (fds[1].revents && ! on_key (k))
            fds[1].fd = -1;
    }
    return NULL;
}

struct watch_keys *
watch_keys_begin (void)
{
    static const int taken[] = { SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT };
    pthread_t thread;
    sigset_t signals;
    if (! isatty (STDIN_FILENO) || ! isatty (STDOUT_FILENO))
        return NULL;
    struct watch_keys *k = x_new0 (struct watch_keys);
    if (tcgetattr (STDIN_FILENO, &k->before) == 0)
        take_terminal (k);
    if (! k->is_changed) {
        free (k);
        return NULL;
    }
    sigemptyset (&signals);
    for (size_t i = 0; i < ARRAY_LEN (taken); i++)
        sigaddset (&signals, taken[i]);
    pthread_sigmask (SIG_BLOCK, &signals, NULL);
    k->signal_fd = signalfd (-1, &signals, SFD_CLOEXEC);
    if (k->signal_fd >= 0 && pthread_create (&thread, NULL, listen_thread, k) == 0) {
        pthread_detach (thread);
        return k;
    }
    pthread_sigmask (SIG_UNBLOCK, &signals, NULL);
    give_back (k);
    free (k);
    return NULL;
}

void
watch_keys_end (struct watch_keys *k)
{
    if (k)
        give_back (k);
}
