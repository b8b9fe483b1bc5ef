/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/first_process.h"

#include "base/cleanup.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* The program's status once it has ended, -1 before. */
static int
reap (pid_t program)
{
    int status, told = -1;
    pid_t pid;
    while ((pid = waitpid (-1, &status, WNOHANG)) > 0)
        if (pid == program)
            told = WIFEXITED (status) ? WEXITSTATUS (status) : 128 + WTERMSIG (status);
    return told;
}

static _noreturn_ void
watch_over (pid_t program, const sigset_t *all)
{
    for (;;) {
        siginfo_t info;
        int number = sigwaitinfo (all, &info), status;
        if (number == SIGCHLD && (status = reap (program)) >= 0)
            _exit (status);
        /* What the terminal sends, the program has been sent, too. */
        if (number > 0 && number != SIGCHLD && info.si_code != SI_KERNEL)
            kill (program, number);
    }
}

void
first_process_begin (void)
{
    sigset_t all, old;
    if (getpid () != 1)
        return;
    sigfillset (&all);
    sigprocmask (SIG_BLOCK, &all, &old);
    pid_t program = fork ();
    if (program > 0)
        watch_over (program, &all);
    sigprocmask (SIG_SETMASK, &old, NULL);
}
