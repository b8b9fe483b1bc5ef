/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/programs/host_query.h"

#include "base/clock.h"
#include "base/fdio.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIMEOUT_MS 5000
#define ANSWER_MAX 65536

static bool
start (const char *path, const char *const *argv, int output_fd, pid_t *pid)
{
    char *const env[] = { NULL };
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init (&actions);
    posix_spawn_file_actions_addopen (&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2 (&actions, output_fd, 1);
    posix_spawn_file_actions_addopen (&actions, 2, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addchdir_np (&actions, "/");
    posix_spawnattr_t attributes;
    sigset_t none, defaults;
    sigemptyset (&none);
    sigfillset (&defaults);
    posix_spawnattr_init (&attributes);
    posix_spawnattr_setsigmask (&attributes, &none);
    posix_spawnattr_setsigdefault (&attributes, &defaults);
    /* A group of its own: whatever it starts is killed with it. */
    posix_spawnattr_setpgroup (&attributes, 0);
    posix_spawnattr_setflags (&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                               POSIX_SPAWN_SETPGROUP);
    int status =
        posix_spawn (pid, path, &actions, &attributes, (char *const *)(uintptr_t)argv, env);
    posix_spawnattr_destroy (&attributes);
    posix_spawn_file_actions_destroy (&actions);
    return status == 0;
}

/* Until the end of what it prints, the time or the room is over; false for the latter two. */
static bool
read_answer (int fd, struct buf *out)
{
    uint64_t end = clock_monotonic_ms () + TIMEOUT_MS;
    size_t limit = out->len + ANSWER_MAX;
    for (;;) {
        uint64_t now = clock_monotonic_ms ();
        if (now >= end || fd_wait (fd, POLLIN, (int64_t)(end - now)) <= 0)
            return false;
        ssize_t n = read (fd, buf_reserve (out, 4096), 4096);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0 || out->len > limit)
            return n == 0;
        out->len += (size_t)n;
    }
}

bool
host_query (const char *path, const char *const *argv, struct buf *out)
{
    int fds[2], status = 1;
    pid_t pid;
    if (pipe2 (fds, O_CLOEXEC) < 0)
        return false;
    bool is_started = start (path, argv, fds[1], &pid);
    close (fds[1]);
    bool is_read = is_started && read_answer (fds[0], out);
    close (fds[0]);
    if (! is_started)
        return false;
    if (! is_read)
        kill (-pid, SIGKILL);
    while (waitpid (pid, &status, 0) < 0 && errno == EINTR)
        ;
    return is_read && WIFEXITED (status) && WEXITSTATUS (status) == 0;
}
