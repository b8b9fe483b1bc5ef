/* SPDX-License-Identifier: Apache-2.0
 *
 * Attempts on other processes, on memory they share, on the terminal, and through namespaces.
 */
#include "tests/escape/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <mqueue.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

/* --- namespaces: what the call itself comes to, and nothing after it --- */

static int
born (long pid)
{
    if (pid == 0)
        _exit (0);
    int told = errno;
    if (pid > 0)
        waitpid ((pid_t)pid, NULL, 0);
    errno = told;
    return tell (pid, NULL);
}

static int
try_clone (char **a)
{
    return born (syscall (SYS_clone, strtoul (a[0], NULL, 16) | SIGCHLD, 0, 0, 0, 0));
}

static int
try_clone3 (char **a)
{
    struct clone_args args = { .flags = strtoul (a[0], NULL, 16), .exit_signal = SIGCHLD };
    return born (syscall (SYS_clone3, &args, sizeof args));
}

/* --- other processes --- */

static int
try_signal (char **a)
{
    pid_t pid = atoi (a[0]);
    int number = atoi (a[1]);
    siginfo_t info = { .si_code = SI_QUEUE, .si_signo = number };
    if (kill (pid, number) == 0)
        return tell (0, "kill");
    if (syscall (SYS_tgkill, pid, pid, number) == 0)
        return tell (0, "tgkill");
    if (syscall (SYS_rt_sigqueueinfo, pid, number, &info) == 0)
        return tell (0, "rt_sigqueueinfo");
    int fd = (int)syscall (SYS_pidfd_open, pid, 0);
    if (fd >= 0 && syscall (SYS_pidfd_send_signal, fd, number, NULL, 0) == 0)
        return tell (0, "pidfd_send_signal");
    return tell (-1, NULL);
}

/* By what needs no call that names it: a folder of /proc is a descriptor of its process. */
static int
try_signal_by_folder (char **a)
{
    char path[64];
    snprintf (path, sizeof path, "/proc/%s", a[0]);
    int fd = open (path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return tell (fd < 0 ? -1 : syscall (SYS_pidfd_send_signal, fd, atoi (a[1]), NULL, 0), NULL);
}

/* The owner of a socket is sent a signal of its choice once something comes. Told is whether the
 * owner could be set, not whether the signal came. */
static int
try_signal_by_file (char **a)
{
    int pair[2], pid = atoi (a[0]);
    struct f_owner_ex thread = { F_OWNER_TID, pid };
    if (socketpair (AF_UNIX, SOCK_STREAM, 0, pair) < 0 || fcntl (pair[0], F_SETFL, O_ASYNC) < 0 ||
        fcntl (pair[0], F_SETSIG, atoi (a[1])) < 0)
        return 3;
    const char *way = fcntl (pair[0], F_SETOWN, pid) == 0          ? "F_SETOWN"
                      : fcntl (pair[0], F_SETOWN_EX, &thread) == 0 ? "F_SETOWN_EX"
                      : ioctl (pair[0], FIOSETOWN, &pid) == 0      ? "FIOSETOWN"
                      : ioctl (pair[0], SIOCSPGRP, &pid) == 0      ? "SIOCSPGRP"
                                                                   : NULL;
    if (! way)
        return tell (-1, NULL);
    return tell (write (pair[1], "x", 1), way);
}

static int
try_everybody (char **a)
{
    return tell (kill (-1, atoi (a[0])), NULL);
}

static int
try_prlimit (char **a)
{
    struct rlimit none = { 0, 0 };
    return tell (syscall (SYS_prlimit64, atoi (a[0]), RLIMIT_CORE, &none, NULL), NULL);
}

static int
try_priority (char **a)
{
    unsigned long all[16];
    pid_t pid = atoi (a[0]);
    memset (all, 0xff, sizeof all);
    if (setpriority (PRIO_PROCESS, (id_t)pid, 1) == 0)
        return tell (0, "setpriority");
    if (syscall (SYS_sched_setaffinity, pid, sizeof all, all) == 0)
        return tell (0, "sched_setaffinity");
    if (syscall (SYS_ioprio_set, 1, pid, (2 << 13) | 4) == 0)
        return tell (0, "ioprio_set");
    return tell (-1, NULL);
}

/* --- memory and queues --- */

static int
try_shm (char **a)
{
    int id = shmget ((key_t)strtoul (a[0], NULL, 0), 0, 0);
    char *memory = id < 0 ? (char *)-1 : shmat (id, NULL, 0);
    if (memory == (char *)-1)
        return tell (-1, NULL);
    char text[64] = "";
    memcpy (text, memory, sizeof text - 1);
    strcpy (memory, "overwritten");
    return tell (0, text);
}

static int
try_queue (char **a)
{
    return tell (msgget ((key_t)strtoul (a[0], NULL, 0), 0), NULL);
}

static int
try_semaphore (char **a)
{
    return tell (semget ((key_t)strtoul (a[0], NULL, 0), 0, 0), NULL);
}

static int
try_posix_queue (char **a)
{
    mqd_t queue = mq_open (a[0], O_RDWR);
    return tell (queue == (mqd_t)-1 ? -1 : 0, NULL);
}

/* Makes a segment and finds it again: what a session may do among its own. */
static int
own_shm (char **a)
{
    key_t key = (key_t)strtoul (a[0], NULL, 0);
    int id = shmget (key, 4096, IPC_CREAT | 0600);
    return tell (id < 0 || shmat (id, NULL, 0) == (void *)-1 ? -1 : 0, NULL);
}

/* --- the terminal --- */

static int
try_terminal (char **a)
{
    (void)a;
    char text[64] = "";
    signal (SIGTTOU, SIG_IGN);
    signal (SIGTTIN, SIG_IGN);
    int fd = open ("/dev/tty", O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return tell (-1, NULL);
    tcsetpgrp (fd, getpgrp ());
    struct pollfd polled = { fd, POLLIN, 0 };
    ssize_t n = poll (&polled, 1, 2000) > 0 ? read (fd, text, sizeof text - 1) : 0;
    text[n > 0 ? n - 1 : 0] = '\0';
    return tell (0, text);
}

/* --- what lies beside a file's content --- */

static int
read_attribute (char **a)
{
    char text[64] = "";
    return tell (getxattr (a[0], "user.note", text, sizeof text - 1), text);
}

static int
write_attribute (char **a)
{
    return tell (setxattr (a[0], "user.mark", "x", 1, 0), NULL);
}

/* --- sockets of the host --- */

static int
bind_here (char **a)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    strncpy (address.sun_path, a[0], sizeof address.sun_path - 1);
    int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int client = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind (fd, (struct sockaddr *)&address, sizeof address) < 0 || listen (fd, 1) < 0)
        return tell (-1, NULL);
    return tell (connect (client, (struct sockaddr *)&address, sizeof address), NULL);
}

/* --- files by another way than their content --- */

static int
try_chmod (char **a)
{
    return tell (chmod (a[0], 0640), NULL);
}

/* Sees that somebody opens it: inotify asks for no right on the content. */
static int
try_watch (char **a)
{
    int fd = inotify_init1 (IN_CLOEXEC);
    return tell (fd < 0 ? -1 : inotify_add_watch (fd, a[0], IN_OPEN), NULL);
}

/* --- what a crash leaves --- */

/* A child that raises its limit as far as it may and crashes. */
static int
try_core (char **a)
{
    (void)a;
    int status = 0;
    pid_t pid = fork ();
    if (pid == 0) {
        struct rlimit limit;
        getrlimit (RLIMIT_CORE, &limit);
        limit.rlim_cur = limit.rlim_max;
        setrlimit (RLIMIT_CORE, &limit);
        abort ();
    }
    if (pid < 0 || waitpid (pid, &status, 0) < 0 || ! WIFSIGNALED (status))
        return 3;
    errno = EFBIG;
    return tell (WCOREDUMP (status) ? 0 : -1, NULL);
}

const struct attempt_row wall_attempts[] = {
    { "clone", 1, try_clone },
    { "clone3", 1, try_clone3 },
    { "signal", 2, try_signal },
    { "signal-by-folder", 2, try_signal_by_folder },
    { "signal-by-file", 2, try_signal_by_file },
    { "signal-everybody", 1, try_everybody },
    { "prlimit", 1, try_prlimit },
    { "priority", 1, try_priority },
    { "shm", 1, try_shm },
    { "own-shm", 1, own_shm },
    { "queue", 1, try_queue },
    { "semaphore", 1, try_semaphore },
    { "posix-queue", 1, try_posix_queue },
    { "terminal", 0, try_terminal },
    { "read-attribute", 1, read_attribute },
    { "write-attribute", 1, write_attribute },
    { "bind-here", 1, bind_here },
    { "chmod", 1, try_chmod },
    { "watch", 1, try_watch },
    { "core-dump", 0, try_core },
    { 0 },
};
