/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/mcp/run_program.h"

#include "base/fdio.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

#define OUTPUT_MAX ((size_t)1 << 20)
#define SHOWN_MAX  2000

extern char **environ;

static int
spawn_in (const char *const *argv, const char *dir, int out_fd, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init (&actions);
    posix_spawn_file_actions_addopen (&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2 (&actions, out_fd, 1);
    posix_spawn_file_actions_adddup2 (&actions, out_fd, 2);
    posix_spawn_file_actions_addchdir_np (&actions, dir);
    int failed =
        posix_spawnp (pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy (&actions);
    return failed;
}

/* Everything is read, so that it never waits for us; its beginning and end are kept. */
static void
read_output (int fd, struct buf *out)
{
    char data[4096];
    for (ssize_t n; (n = read (fd, data, sizeof data)) > 0 || (n < 0 && errno == EINTR);) {
        if (n > 0 && out->len > OUTPUT_MAX)
            buf_truncate (out, 0);
        if (n > 0)
            buf_append (out, data, (size_t)n);
    }
}

bool
run_program_reading (const char *const *argv, const char *dir, struct buf *out,
                     struct mur_error **err)
{
    int pair[2], status = 0;
    pid_t pid;
    if (pipe2 (pair, O_CLOEXEC) < 0)
        return mur_fail_errno (err, E_IO_003, "cannot make a pipe");
    errno = spawn_in (argv, dir, pair[1], &pid);
    close (pair[1]);
    if (errno) {
        close (pair[0]);
        mur_fail_errno (err, E_IO_003, "cannot run %s", argv[0]);
        return mur_hint (err, "install %s", argv[0]);
    }
    read_output (pair[0], out);
    close (pair[0]);
    while (waitpid (pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED (status) && WEXITSTATUS (status) == 0)
        return true;
    const char *text = out->data ? out->data : "";
    return mur_fail (err, E_IO_003, "%s %s failed:\n%s", argv[0], argv[1] ? argv[1] : "",
                     out->len > SHOWN_MAX ? text + out->len - SHOWN_MAX : text);
}

bool
run_program (const char *const *argv, const char *dir, struct mur_error **err)
{
    _cleanup_buf_ struct buf out = { 0 };
    return run_program_reading (argv, dir, &out, err);
}
