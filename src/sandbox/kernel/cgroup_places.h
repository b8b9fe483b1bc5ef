/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the control-group hierarchies are mounted, where this process is in them, and asking the
 * user's service manager for a place of its own (spec/containment.md 14.2).
 */
#pragma once

/* Hierarchies a scope uses. The freezer of version 1 makes the kill atomic. */
enum hierarchy {
    H_MEMORY,
    H_PIDS,
    H_CPU,
    H_BLKIO,
    H_FREEZER,
    H_UNIFIED, /* version 2: all controllers, or none on a hybrid host */
    H_COUNT,
};

/* "memory" ...; NULL for H_UNIFIED. */
extern const char *const cgroup_hierarchy_names[H_COUNT];
/* The leaf a process moves to, so that its group may hand controllers down. */
#define CGROUP_SUPERVISOR "murmur-supervisor"

struct cgroup_place {
    char *mount; /* mount point, NULL: not mounted */
    char *own;   /* this process's path in it, above a leaf it moved to; NULL: unknown */
};

struct cgroup_places {
    struct cgroup_place at[H_COUNT];
};

/* Which process numbers ours belong to: the inode of this process's pid namespace; 0: unknown. */
unsigned long cgroup_pid_space (void);
/* Reads them. The first call of the process asks the service manager first, where there is one. */
void cgroup_places_find (struct cgroup_places *out);
/* From the texts of mountinfo and of /proc/self/cgroup, which are changed. */
void cgroup_places_parse (char *mountinfo, char *own, struct cgroup_places *out);
void cgroup_places_free (struct cgroup_places *places);
