/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/line/own_command.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "spawn/child/start.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

void
own_command_default_signals (void)
{
    sigset_t none;
    sigemptyset (&none);
    (void)sigprocmask (SIG_SETMASK, &none, NULL);
}

bool
own_command_run (const char *const *words)
{
    _cleanup_strv_ struct strv argv = { 0 };
    _cleanup_error_ struct mur_error *err = NULL;
    bool is_ok = program_push (&argv, &err);
    for (; *words; words++)
        strv_push (&argv, *words);
    pid_t pid = is_ok ? fork () : -1;
    if (pid == 0) {
        own_command_default_signals ();
        execv (argv.items[0], argv.items);
        _exit (127);
    }
    int status = -1;
    while (pid > 0 && waitpid (pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (err)
        diag_error (err);
    return pid > 0 && WIFEXITED (status) && WEXITSTATUS (status) == 0;
}
