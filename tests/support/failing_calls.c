/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded into a program under test: lets its N-th call of one kind fail as the kernel may let it
 * fail at any time, in it or in what it forks.
 *
 * FAIL_KIND=processes|programs|waits|sockets|descriptors, FAIL_AT=N counts from 1 over all
 * processes of the program, FAIL_REPORT names a file that receives the number of such calls.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

static struct shared {
    atomic_long calls;
} * shared;
static const char *kind, *report_path;
static long fail_at;
static pid_t first;

__attribute__ ((constructor)) static void
begin (void)
{
    const char *at = getenv ("FAIL_AT");
    shared = mmap (NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    kind = getenv ("FAIL_KIND");
    report_path = getenv ("FAIL_REPORT");
    fail_at = at ? atol (at) : 0;
    first = getpid ();
}

/* True when this call must fail, with errno set. */
static int
fails (const char *of_kind, int error)
{
    if (! shared || ! kind || strcmp (kind, of_kind) != 0)
        return 0;
    if (atomic_fetch_add (&shared->calls, 1) + 1 != fail_at)
        return 0;
    errno = error;
    return 1;
}

#define REAL(name) ((__typeof__ (&name))dlsym (RTLD_NEXT, #name))

/* One call of plain arguments. */
#define CALL(of_kind, error, type, name, params, args)                                             \
    type name params                                                                               \
    {                                                                                              \
        return fails (of_kind, error) ? (type)-1 : REAL (name) args;                               \
    }

CALL ("processes", EAGAIN, pid_t, fork, (void), ())
CALL ("programs", ENOMEM, int, execve, (const char *path, char *const argv[], char *const env[]),
      (path, argv, env))
CALL ("waits", EINTR, int, poll, (struct pollfd * fds, nfds_t n, int ms), (fds, n, ms))
CALL ("waits", EINTR, int, epoll_wait, (int fd, struct epoll_event *events, int max, int ms),
      (fd, events, max, ms))
CALL ("sockets", EADDRINUSE, int, bind, (int fd, const struct sockaddr *address, socklen_t len),
      (fd, address, len))
CALL ("sockets", EADDRINUSE, int, listen, (int fd, int backlog), (fd, backlog))
CALL ("sockets", ECONNABORTED, int, accept4,
      (int fd, struct sockaddr *address, socklen_t *len, int flags), (fd, address, len, flags))
CALL ("sockets", ECONNREFUSED, int, connect, (int fd, const struct sockaddr *a, socklen_t len),
      (fd, a, len))
CALL ("sockets", ECONNRESET, ssize_t, send, (int fd, const void *data, size_t len, int flags),
      (fd, data, len, flags))
CALL ("sockets", ECONNRESET, ssize_t, recv, (int fd, void *data, size_t len, int flags),
      (fd, data, len, flags))
CALL ("sockets", ENOBUFS, ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags),
      (fd, m, flags))
CALL ("sockets", ECONNRESET, ssize_t, recvmsg, (int fd, struct msghdr *m, int flags),
      (fd, m, flags))
CALL ("descriptors", EMFILE, int, socket, (int domain, int type, int protocol),
      (domain, type, protocol))
CALL ("descriptors", EMFILE, int, socketpair, (int domain, int type, int protocol, int pair[2]),
      (domain, type, protocol, pair))
CALL ("descriptors", EMFILE, int, pipe2, (int pair[2], int flags), (pair, flags))
CALL ("descriptors", EMFILE, int, eventfd, (unsigned value, int flags), (value, flags))
CALL ("descriptors", EMFILE, int, epoll_create1, (int flags), (flags))
CALL ("descriptors", EMFILE, int, timerfd_create, (clockid_t clock, int flags), (clock, flags))

int
pthread_create (pthread_t *thread, const pthread_attr_t *attr, void *(*run) (void *), void *arg)
{
    return fails ("processes", EAGAIN) ? EAGAIN : REAL (pthread_create) (thread, attr, run, arg);
}

int
clone (int (*run) (void *), void *stack, int flags, void *arg, ...)
{
    return fails ("processes", EAGAIN) ? -1 : REAL (clone) (run, stack, flags, arg);
}

long
syscall (long number, ...)
{
    va_list ap;
    long a[6];
    va_start (ap, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg (ap, long);
    va_end (ap);
    if (number == SYS_clone3 && fails ("processes", EAGAIN))
        return -1;
    if (number == SYS_pidfd_open && fails ("descriptors", EMFILE))
        return -1;
    return REAL (syscall) (number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static int
open_at (int fd, const char *path, int flags, mode_t mode)
{
    if (fails ("descriptors", EMFILE))
        return -1;
    return (int)REAL (syscall) (SYS_openat, fd, path, flags, mode);
}

#define OPEN(name, fd_param, fd)                                                                   \
    int name (fd_param const char *path, int flags, ...)                                           \
    {                                                                                              \
        va_list ap;                                                                                \
        va_start (ap, flags);                                                                      \
        mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg (ap, mode_t) : 0;                   \
        va_end (ap);                                                                               \
        return open_at (fd, path, flags | O_LARGEFILE, mode);                                      \
    }
#define DIR_FD int dir_fd,
OPEN (open, , AT_FDCWD)
OPEN (open64, , AT_FDCWD)
OPEN (openat, DIR_FD, dir_fd)
OPEN (openat64, DIR_FD, dir_fd)

__attribute__ ((destructor)) static void
report (void)
{
    if (! shared || ! report_path || first != getpid ())
        return;
    int fd =
        (int)REAL (syscall) (SYS_openat, AT_FDCWD, report_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd >= 0)
        dprintf (fd, "%ld", atomic_load (&shared->calls));
}
