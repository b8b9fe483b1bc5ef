/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/run/bare_child.h"

#include "sandbox/kernel/child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static _noreturn_ void
child_before_exec (const struct bare_child_spec *spec, pid_t parent, int report_fd)
{
    setpgid (0, 0);
    child_reset_signals ();
    const char *failed =
        child_place_streams ((const int[3]){ spec->stdin_fd, spec->stdout_fd, spec->stderr_fd });
    if (failed)
        child_fail (report_fd, failed, NULL);
    if (fchdir (spec->dir_fd) < 0)
        child_fail (report_fd, "enter the work folder", NULL);
    if (syscall (SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
        child_fail (report_fd, "close_range", NULL);
    /* The parent may have died before the request was heard. */
    if (prctl (PR_SET_PDEATHSIG, SIGKILL) < 0)
        child_fail (report_fd, "prctl(PR_SET_PDEATHSIG)", NULL);
    if (getppid () != parent)
        _exit (125);
    execve (spec->path, spec->argv, spec->env);
    child_fail (report_fd, "execve", spec->path);
}

bool
bare_child_start (const struct bare_child_spec *spec, struct bare_child *out,
                  struct mur_error **err)
{
    int report[2], pidfd = -1;
    if (pipe2 (report, O_CLOEXEC) < 0)
        return mur_fail_errno (err, E_IO_003, "cannot make a pipe");
    pid_t parent = getpid ();
    struct clone_args args = { 0 };
    pid_t pid = child_fork (&args, &pidfd);
    if (pid == 0)
        child_before_exec (spec, parent, report[1]);
    char text[CHILD_REPORT_MAX + 1];
    if (child_await_exec (pid, pidfd, report, text, err)) {
        *out = (struct bare_child){ pid, pidfd };
        return true;
    }
    if (! text[0])
        return false;
    const char *step, *detail;
    int errno_value;
    child_report_parse (text, &step, &errno_value, &detail);
    errno = errno_value;
    return mur_fail_errno (err, E_IO_003, "%s%s%s", step, *detail ? " " : "", detail);
}
