/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a program to its end: `bench-measure FILE PROGRAM [ARGUMENT]...` writes to FILE the
 * milliseconds from fork to exit, the peak in KiB, the milliseconds of processor, and exits as the
 * program did. A small process of its own, because the peak of a child begins with what its parent
 * holds at the fork.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double
now_ms (void)
{
    struct timespec t;
    clock_gettime (CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double
ms_of (struct timeval t)
{
    return (double)t.tv_sec * 1e3 + (double)t.tv_usec / 1e3;
}

int
main (int argc, char **argv)
{
    if (argc < 3)
        return 2;
    double began = now_ms ();
    pid_t pid = fork ();
    if (pid == 0) {
        execv (argv[2], argv + 2);
        _exit (127);
    }
    int status;
    struct rusage used;
    if (pid < 0 || wait4 (pid, &status, 0, &used) < 0)
        return 2;
    double took = now_ms () - began;
    FILE *out = fopen (argv[1], "w");
    if (! out)
        return 2;
    fprintf (out, "%.3f %ld %.3f\n", took, used.ru_maxrss,
             ms_of (used.ru_utime) + ms_of (used.ru_stime));
    if (fclose (out) != 0)
        return 2;
    return WIFEXITED (status) ? WEXITSTATUS (status) : 128 + WTERMSIG (status);
}
