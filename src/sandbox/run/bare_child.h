/* SPDX-License-Identifier: Apache-2.0
 *
 * Starting a program that is not confined: the harness of inference.transport: process, which is
 * outside of every containment class (spec/containment.md 15.4).
 *
 * Always true: it leads a process group of its own, holds the three given streams and nothing else
 * of ours, and is killed when the thread that started it ends.
 */
#pragma once

#include "base/error.h"

#include <sys/types.h>

struct bare_child_spec {
    const char *path; /* absolute */
    char *const *argv;
    char *const *env;
    int dir_fd;                         /* its current directory; borrowed */
    int stdin_fd, stdout_fd, stderr_fd; /* borrowed; become 0, 1, 2 */
};

struct bare_child {
    pid_t pid; /* leader of its own process group */
    int pidfd; /* owned */
};

/* Starts it and returns once it runs the program. E-IO-003 naming the step; no process is left. */
bool bare_child_start (const struct bare_child_spec *spec, struct bare_child *out,
                       struct mur_error **err);
