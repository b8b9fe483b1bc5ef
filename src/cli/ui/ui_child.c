/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ui/ui_child.h"

#include "base/clock.h"
#include "cli/line/own_command.h"
#include "spawn/child/start.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#define GRACE_MS 5000

static void
run_words (char *const *argv, const int out[2], const int err[2])
{
    int null = open ("/dev/null", O_RDONLY);
    own_command_default_signals ();
    if (null >= 0 && dup2 (null, STDIN_FILENO) >= 0 && dup2 (out[1], STDOUT_FILENO) >= 0 &&
        dup2 (err[1], STDERR_FILENO) >= 0)
        execv (argv[0], argv);
    _exit (127);
}

static bool
take_some (int fd, struct buf *into, bool *is_cut)
{
    char piece[8192];
    ssize_t n = read (fd, piece, sizeof piece);
    if (n <= 0)
        return n < 0 && (errno == EINTR || errno == EAGAIN);
    size_t room = into->len < UI_CHILD_BYTES ? UI_CHILD_BYTES - into->len : 0;
    *is_cut |= (size_t)n > room;
    buf_append (into, piece, (size_t)n < room ? (size_t)n : room);
    return true;
}

/* Until both ends are closed, its time is over, or it is not wanted any more. */
static void
collect (pid_t pid, int out, int err, int stop_fd, uint64_t until_ms, struct ui_child_result *r)
{
    struct pollfd fds[] = { { .fd = out, .events = POLLIN },
                            { .fd = err, .events = POLLIN },
                            { .fd = stop_fd, .events = POLLIN } };
    bool is_told = false;
    while (fds[0].fd >= 0 || fds[1].fd >= 0) {
        uint64_t now = clock_monotonic_ms ();
        int left = now < until_ms ? (int)(until_ms - now) : 0;
        int count = poll (fds, 3, left);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0 || fds[2].revents) {
            /* It gets a while to end in its own way, then it is ended. */
            r->is_late |= count <= 0;
            kill (pid, is_told ? SIGKILL : SIGTERM);
            if (is_told)
                return;
            is_told = true;
            fds[2].fd = -1;
            until_ms = clock_monotonic_ms () + GRACE_MS;
            continue;
        }
        if (fds[0].revents && ! take_some (out, &r->out, &r->is_cut))
            fds[0].fd = -1;
        if (fds[1].revents && ! take_some (err, &r->err, &r->is_cut))
            fds[1].fd = -1;
    }
}

bool
ui_child_run (const char *const *words, uint64_t timeout_ms, int stop_fd,
              struct ui_child_result *result, struct mur_error **err)
{
    *result = (struct ui_child_result){ 0 };
    _cleanup_strv_ struct strv argv = { 0 };
    int out[2] = { -1, -1 }, errors[2] = { -1, -1 };
    if (! program_push (&argv, err))
        return false;
    for (; *words; words++)
        strv_push (&argv, *words);
    bool is_ok = pipe2 (out, O_CLOEXEC) == 0 && pipe2 (errors, O_CLOEXEC) == 0;
    pid_t pid = is_ok ? fork () : -1;
    if (pid == 0)
        run_words (argv.items, out, errors);
    if (pid < 0)
        mur_fail_errno (err, E_IO_003, "cannot run mur %s", argv.items[1]);
    close (out[1]);
    close (errors[1]);
    int status = 0;
    if (pid > 0) {
        collect (pid, out[0], errors[0], stop_fd, clock_monotonic_ms () + timeout_ms, result);
        while (waitpid (pid, &status, 0) < 0 && errno == EINTR)
            ;
        result->status = WIFEXITED (status) ? WEXITSTATUS (status) : 128 + WTERMSIG (status);
    }
    close (out[0]);
    close (errors[0]);
    return pid > 0;
}

void
ui_child_result_clear (struct ui_child_result *result)
{
    buf_free (&result->out);
    buf_free (&result->err);
}
