/* SPDX-License-Identifier: Apache-2.0
 *
 * Starting one contained subprocess: the order of steps between fork and exec (spec/containment.md
 * 7).
 *
 * Everything a child needs is computed before; the child runs one linear list of async-signal-safe
 * steps and reports the one that failed. No step is ever skipped.
 */
#pragma once

#include "base/error.h"
#include "sandbox/kernel/cgroup.h"
#include "sandbox/kernel/landlock.h"
#include "sandbox/kernel/syscall_filter.h"
#include "sandbox/space/namespaces.h"

#include <sys/types.h>

/* capabilities.resources, the part that resource limits enforce. */
struct spawn_limits {
    uint64_t max_processes; /* 0: a control group counts them */
    uint64_t max_open_files;
    uint64_t max_file_size_bytes;
    uint64_t cpu_seconds;
    uint64_t memory_bytes; /* 0: no bound on addresses */
};

struct spawn_request {
    const char *path; /* absolute: what is executed */
    char *const *argv;
    char *const *env;
    int stdin_fd, stdout_fd, stderr_fd; /* borrowed; become 0, 1, 2 */
    struct spawn_limits limits;
    const struct cgroup_scope *scope;            /* NULL: none */
    const struct cgroup_nest *nest;              /* within the scope; NULL: the scope itself */
    const struct session_namespaces *namespaces; /* joined; never NULL */
    const struct landlock_plan *landlock;        /* NULL below the Landlock tiers */
    const struct syscall_filter *filter;         /* never NULL */
    bool is_heard; /* refused system calls are asked of the caller, by spawned.listener_fd */
};

struct spawned {
    pid_t pid;       /* leader of a terminal session and process group of its own */
    int pidfd;       /* owned */
    int listener_fd; /* owned; system calls of it that want an answer (syscall_filter.h), -1 */
};

/* Starts it and returns once it runs the program. Fails with E-IO-003 naming the step. On failure
 * no process is left. */
bool
sandbox_spawn (const struct spawn_request *request, struct spawned *out, struct mur_error **err);
