/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded into a session: at one step of its task loop, told by the trace line the step ends
 * with, something else is set off and the loop is held for a moment, so that the two meet somewhere
 * in the next step.
 *
 * RACE_AT=EVENT:N is the N-th such line of a task (counted from each task_start on). RACE_DO=signal
 * sends SIGTERM to the session, deadline lets its deadline timer run out, tell writes a byte to the
 * descriptor RACE_FD. RACE_HOLD_US bounds the moment; each is drawn anew. Children are left alone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define LINE_START "{\"event_type\":\""
#define REAL(name) ((__typeof__ (&name))dlsym (RTLD_NEXT, #name))

static int is_owner, timer_fd = -1;
static long seen, wanted;
static char event[64];

__attribute__ ((constructor)) static void
start (void)
{
    const char *at = getenv ("RACE_AT");
    is_owner = at && ! getenv ("RACE_OWNER") && sscanf (at, "%63[^:]:%ld", event, &wanted) == 2;
    setenv ("RACE_OWNER", "taken", 1);
    srandom ((unsigned)getpid ());
}

/* The session's own timers: the deadline is the first. */
int
timerfd_create (int clock, int flags)
{
    int fd = REAL (timerfd_create) (clock, flags);
    if (timer_fd < 0)
        timer_fd = fd;
    return fd;
}

static void
set_off (void)
{
    const char *what = getenv ("RACE_DO"), *fd = getenv ("RACE_FD");
    struct itimerspec now = { .it_value = { 0, 1 } };
    if (what && strcmp (what, "signal") == 0)
        syscall (SYS_kill, getpid (), SIGTERM);
    if (what && strcmp (what, "deadline") == 0)
        timerfd_settime (timer_fd, 0, &now, NULL);
    if (what && strcmp (what, "tell") == 0 && fd)
        syscall (SYS_write, atoi (fd), "!", 1);
}

static void
hold (void)
{
    const char *most = getenv ("RACE_HOLD_US");
    long us = most ? random () % (atol (most) + 1) : 0;
    struct timespec from, now;
    clock_gettime (CLOCK_MONOTONIC, &from);
    do
        clock_gettime (CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - from.tv_sec) * 1000000 + (now.tv_nsec - from.tv_nsec) / 1000 < us);
}

static int
is_line_of (const char *data, size_t len, const char *name)
{
    size_t start = sizeof (LINE_START) - 1, name_len = strlen (name);
    return len > start + name_len && memcmp (data, LINE_START, start) == 0 &&
           memcmp (data + start, name, name_len) == 0 && data[start + name_len] == '"';
}

ssize_t
write (int fd, const void *data, size_t len)
{
    ssize_t done = syscall (SYS_write, fd, data, len);
    if (! is_owner || done <= 0)
        return done;
    if (is_line_of (data, len, "task_start"))
        seen = 0;
    if (is_line_of (data, len, event) && ++seen == wanted) {
        set_off ();
        hold ();
    }
    return done;
}
