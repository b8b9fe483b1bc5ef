/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/kernel/watcher.h"

#include "base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

struct group_watcher {
    pid_t pid;
    int lifeline_fd; /* the write end */
};

/* Closes every descriptor but the lifeline and the group's. Those are few, so the gaps between them
 * are closed. */
static void
keep_only (int lifeline_fd, const struct cgroup_scope *scope)
{
    int kept[CGROUP_MAX_FDS + 1];
    size_t count = cgroup_scope_fds (scope, kept);
    kept[count++] = lifeline_fd;
    for (size_t i = 1; i < count; i++)
        for (size_t n = i; n > 0 && kept[n] < kept[n - 1]; n--) {
            int other = kept[n];
            kept[n] = kept[n - 1];
            kept[n - 1] = other;
        }
    unsigned next = 0;
    for (size_t i = 0; i < count; i++) {
        if ((unsigned)kept[i] > next)
            syscall (SYS_close_range, next, (unsigned)kept[i] - 1, 0);
        next = (unsigned)kept[i] + 1;
    }
    syscall (SYS_close_range, next, ~0U, 0);
}

static _noreturn_ void
watch (int lifeline_fd, const struct cgroup_scope *scope)
{
    static const int ignored[] = { SIGINT,    SIGTERM, SIGHUP,  SIGPIPE, SIGQUIT,
                                   SIGUSR1,   SIGUSR2, SIGALRM, SIGXCPU, SIGPWR,
                                   SIGVTALRM, SIGPROF, SIGSYS,  SIGPOLL, SIGSTKFLT };
    for (size_t i = 0; i < ARRAY_LEN (ignored); i++)
        signal (ignored[i], SIG_IGN);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        signal (number, SIG_IGN);
    sigset_t none;
    sigemptyset (&none);
    sigprocmask (SIG_SETMASK, &none, NULL);
    setsid ();
    prctl (PR_SET_NAME, "mur-watcher", 0, 0, 0);
    keep_only (lifeline_fd, scope);
    char byte;
    ssize_t n;
    do
        n = read (lifeline_fd, &byte, 1);
    while (n < 0 && errno == EINTR);
    if (n == 1) /* an orderly end: the runtime does it all itself */
        _exit (0);
    const struct timespec pause = { .tv_nsec = 5000000 };
    for (int i = 0; i < 400; i++) {
        cgroup_scope_kill (scope);
        if (cgroup_scope_is_empty (scope))
            break;
        nanosleep (&pause, NULL);
    }
    cgroup_scope_remove (scope);
    _exit (0);
}

struct group_watcher *
group_watcher_new (const struct cgroup_scope *scope, struct mur_error **err)
{
    int pair[2];
    if (pipe2 (pair, O_CLOEXEC) < 0)
        return mur_fail_errno (err, E_IO_003, "cannot start the watcher of commands"), NULL;
    pid_t pid = fork ();
    if (pid == 0)
        watch (pair[0], scope);
    int saved = errno;
    close (pair[0]);
    if (pid < 0) {
        close (pair[1]);
        errno = saved;
        return mur_fail_errno (err, E_IO_003, "cannot start the watcher of commands"), NULL;
    }
    struct group_watcher *w = x_new0 (struct group_watcher);
    *w = (struct group_watcher){ pid, pair[1] };
    return w;
}

pid_t
group_watcher_pid (const struct group_watcher *w)
{
    return w->pid;
}

void
group_watcher_free (struct group_watcher *w)
{
    if (! w)
        return;
    ssize_t written _unused_ = write (w->lifeline_fd, "x", 1);
    close (w->lifeline_fd);
    while (waitpid (w->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    free (w);
}
