/* SPDX-License-Identifier: Apache-2.0
 *
 * Groups within a session's scope, for what is to end before the session does. See cgroup.h.
 *
 * They live in the version 2 hierarchy alone: limits are the scope's, whatever version has them; a
 * nested group adds the kill.
 */
#include "sandbox/kernel/cgroup_nest.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fdio.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define NESTS_MAX 16
#define KILL_MS   2000

struct cgroup_nest {
    int scope_fd; /* of the scope, owned */
    int dir_fd;
    char name[16];
};

static void
nest_name (char name[16], int number)
{
    snprintf (name, 16, "nest-%d", number);
}

struct cgroup_nest *
cgroup_nest_new (int scope_fd)
{
    char name[16] = "";
    bool is_made = false;
    for (int i = 0; i < NESTS_MAX && scope_fd >= 0 && ! is_made; i++) {
        nest_name (name, i);
        is_made = mkdirat (scope_fd, name, 0755) == 0;
        if (! is_made && errno != EEXIST)
            break;
    }
    int dir_fd = is_made ? openat (scope_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (dir_fd < 0) {
        if (is_made)
            unlinkat (scope_fd, name, AT_REMOVEDIR);
        return NULL;
    }
    struct cgroup_nest *n = x_new0 (struct cgroup_nest);
    n->scope_fd = fcntl (scope_fd, F_DUPFD_CLOEXEC, 3);
    n->dir_fd = dir_fd;
    memcpy (n->name, name, sizeof name);
    return n;
}

int
cgroup_nest_clone_fd (const struct cgroup_nest *n)
{
    return n->dir_fd;
}

/* Asks for the end of everything in it. Without the atomic kill each process is signalled. */
static void
kill_all (const struct cgroup_nest *n)
{
    _cleanup_close_ int fd = openat (n->dir_fd, "cgroup.kill", O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && write (fd, "1", 1) == 1)
        return;
    _cleanup_close_ int procs = openat (n->dir_fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    _cleanup_buf_ struct buf text = { 0 };
    if (procs < 0 || ! fd_read_all (procs, 1 << 20, &text))
        return;
    for (char *at = text.data, *end; at && *at; at = end) {
        pid_t pid = (pid_t)strtol (at, &end, 10);
        if (end == at)
            break;
        if (pid > 1)
            kill (pid, SIGKILL);
        end += *end == '\n';
    }
}

void
cgroup_nest_free (struct cgroup_nest *n)
{
    if (! n)
        return;
    uint64_t end_ms = clock_monotonic_ms () + KILL_MS;
    const struct timespec pause = { .tv_nsec = 2000000 };
    kill_all (n);
    /* A group can be removed once its last process is gone. */
    while (unlinkat (n->scope_fd, n->name, AT_REMOVEDIR) < 0 && errno == EBUSY &&
           clock_monotonic_ms () < end_ms) {
        nanosleep (&pause, NULL);
        kill_all (n);
    }
    close (n->dir_fd);
    close (n->scope_fd);
    free (n);
}

void
cgroup_nests_remove (int scope_fd)
{
    for (int i = 0; i < NESTS_MAX && scope_fd >= 0; i++) {
        char name[16];
        nest_name (name, i);
        unlinkat (scope_fd, name, AT_REMOVEDIR);
    }
}
