/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/packages/build_command.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "cli/line/missing_manifest.h"
#include "manifest/settings/artifact_manifest.h"

#include <errno.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

/* The status of waitpid(2), or -1 with errno. */
static int
run_shell (const char *command, const char *folder)
{
    char *const argv[] = { (char[]){ "sh" }, (char[]){ "-ec" }, x_strdup (command), NULL };
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init (&files);
    posix_spawn_file_actions_addchdir_np (&files, folder);
    posix_spawn_file_actions_adddup2 (&files, STDERR_FILENO, STDOUT_FILENO);
    pid_t pid;
    int status = -1;
    errno = posix_spawn (&pid, "/bin/sh", &files, NULL, argv, environ);
    bool has_started = errno == 0;
    posix_spawn_file_actions_destroy (&files);
    while (has_started && waitpid (pid, &status, 0) < 0 && errno == EINTR)
        ;
    free (argv[2]);
    return status;
}

bool
build_command_run (const char *source, struct mur_error **err)
{
    _cleanup_free_ char *path = x_asprintf ("%s/murmur.yaml", source);
    _cleanup_ (artifact_manifest_freep) struct artifact_manifest *m =
        artifact_manifest_read (path, err);
    if (! m && access (path, F_OK) < 0)
        return missing_manifest_hint (source,
                                      "run it in the folder of what is packed, or name "
                                      "that: mur build FOLDER",
                                      err);
    if (! m)
        return false;
    if (! m->build)
        return true;
    diag_note ("the build command of %s runs", path);
    int status = run_shell (m->build, source);
    if (status == 0)
        return true;
    if (status < 0)
        return mur_fail_errno (err, E_BLD_006, "the build command of %s could not be started",
                               path);
    bool has_exited = WIFEXITED (status);
    mur_fail (err, E_BLD_006, "the build command of %s %s %d", path,
              has_exited ? "ended with status" : "was killed by signal",
              has_exited ? WEXITSTATUS (status) : WTERMSIG (status));
    return mur_hint (err, "what it says is above; nothing was packed");
}
