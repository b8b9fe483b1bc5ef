/* SPDX-License-Identifier: Apache-2.0
 *
 * The control-group scope that holds every native subprocess of a session
 * (spec/containment.md 14.2, 14.3).
 *
 * Version 2 with delegated memory, pids and cpu when there is one; else one directory of the same
 * name in each writable version 1 hierarchy, with a version 2 directory beside them, when the host
 * has that too, for the atomic kill. The scope outlives its processes and is removed with the
 * session.
 */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct cgroup_limits {
    uint64_t memory_bytes;
    uint64_t pids_max;
    uint64_t cpu_percent;
    uint64_t io_bytes_per_sec; /* 0: not limited */
    const char *io_path;       /* a path on the device the I/O limit is for */
};

enum cgroup_io_status {
    CGROUP_IO_NOT_REQUIRED,
    CGROUP_IO_ENFORCED,
    CGROUP_IO_UNAVAILABLE,
};

struct cgroup_counters {
    uint64_t oom_kills;
    uint64_t pids_refused;
};

struct cgroup_scope;

/* Creates the scope "murmur-<session>-<pid>-<n>". E-RUN-012 when neither version can hold it; the
 * message says what is missing and the hint what to delegate. */
struct cgroup_scope *cgroup_scope_new (const char *session_id, const struct cgroup_limits *limits,
                                       struct mur_error **err);
/* Kills what is left, waits up to two seconds, removes the directories. */
void cgroup_scope_free (struct cgroup_scope *s);
DEFINE_CLEANUP (struct cgroup_scope, cgroup_scope_free)

/* The version 2 directory to clone into (clone3, CLONE_INTO_CGROUP), or -1. Borrowed. */
int cgroup_scope_clone_fd (const struct cgroup_scope *s);
/* Joins this process to the hierarchies cgroup_scope_clone_fd does not cover. Async-signal-safe. 0,
 * or -1 with errno. */
int cgroup_scope_join (const struct cgroup_scope *s);
/* Kills every process of the scope, however it tried to get away. Async-signal-safe but for version
 * 1 without freezer. */
void cgroup_scope_kill (const struct cgroup_scope *s);
/* Ids of its processes, one a line; NULL when they cannot be read. Owned. */
char *cgroup_scope_processes (const struct cgroup_scope *s);
/* True when no process is left in it. */
bool cgroup_scope_is_empty (const struct cgroup_scope *s);
struct cgroup_counters cgroup_scope_counters (const struct cgroup_scope *s);
enum cgroup_io_status cgroup_scope_io_status (const struct cgroup_scope *s, const char **reason);
/* Every descriptor the scope works with, for a process that must keep just these. Returns the
 * count. */
#define CGROUP_MAX_FDS 16
size_t cgroup_scope_fds (const struct cgroup_scope *s, int fds[CGROUP_MAX_FDS]);
/* Removes the directories, for a process that does not own the scope. */
void cgroup_scope_remove (const struct cgroup_scope *s);
/* What the kernel made of the memory limit, as its files say: *limit the bytes, *swap the bytes of
 * swap beside them, "" without swap accounting. Owned. */
void cgroup_scope_memory (const struct cgroup_scope *s, char **limit, char **swap);

/* "v2" or "v1", for reports. */
const char *cgroup_scope_version (const struct cgroup_scope *s);
