/* SPDX-License-Identifier: Apache-2.0
 *
 * What a session's own mount namespace looks like: the session's temp folder over /tmp, or a
 * composed root (spec/containment.md 11, 12).
 *
 * The parent computes a plan: flat arrays of plain strings. The child clones every source tree
 * first, so that covering /tmp or the base hides nothing it still needs, checks the identity of
 * those that must not have been swapped, and then attaches them in order. Nothing allocates after
 * fork.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"

#include <sys/types.h>

enum mount_kind {
    MOUNT_NOTHING, /* the command sees the host's mounts */
    MOUNT_TMP,     /* the session's temp folder at /tmp */
    MOUNT_SEALED,  /* a composed root */
};

struct mount_entry {
    const char *source;
    const char *target; /* absolute, as the command will see it */
    bool is_read_only;
    bool is_required;
    bool is_verified; /* the source must be <dev>:<ino> */
    dev_t dev;
    ino_t ino;
    bool is_file;              /* set by the plan's maker: what the mount point must be */
    const char *staged_target; /* target below the base while the root is composed; filled by
                                  mount_plan_finish */
};

struct mount_link {
    const char *target; /* what it points to */
    const char *path;   /* where it lies */
    const char *staged_path;
};

struct mount_plan {
    enum mount_kind kind;
    const char *base;     /* sealed: where the tmpfs that becomes the root is mounted */
    const char *work_dir; /* where the command starts */
    unsigned uid, gid;
    struct mount_entry *entries;
    size_t entry_count;
    struct mount_link *links;
    size_t link_count;
    const char *const *covered; /* as given; NULL-terminated, may be NULL */
    int *tree_fds;              /* scratch of the child, one an entry */
    const char *staged_dev, *staged_proc;
    bool has_shm,
        has_pts; /* /dev/shm and /dev/pts of the command's own are mounted where possible */
};

/* The folders of a session a plan is made from; each is absolute, canonical and held open by the
 * caller. */
struct mount_folder {
    const char *path;
    dev_t dev;
    ino_t ino;
};

struct mount_folders {
    struct mount_folder work, temp, home, runtime, records;
    const char *sealed_etc; /* folder with the files of mount_synthetic_etc */
    const char *const *
        read_only; /* further trees and files a command needs at their own paths; NULL-terminated */
    const char *const *guarded; /* trees that stay where they are but cannot be written there (below
                                   sealed); NULL-terminated, may be NULL */
    const char *const *protected; /* what of the work folder nothing of the session may change,
                                     where it is there; NULL-terminated, may be NULL */
    const char *const *links;     /* pairs, NULL-terminated, may be NULL: a link and where it leads
                                     (made where nothing else shows it: all of them sealed, those
                                     of /tmp below) */
    const char *const *covered;   /* files that are to be nothing (below sealed), where they are
                                     there;   NULL-terminated, may be NULL */
    const char *const *staged_trees; /* required read-only trees at their own paths (sealed);
                                        NULL-terminated, may be NULL */
};

/* No mounts at all: the command only starts in the work folder. */
void mount_plan_none (struct mount_plan *plan, const struct mount_folders *f, struct arena *a);
/* The plan of a command below sealed. MOUNT_NOTHING when the work folder is /tmp itself. */
void mount_plan_tmp (struct mount_plan *plan, const struct mount_folders *f, struct arena *a);
/* The plan of a sealed command. E-RUN-014 when no base can be had. */
bool mount_plan_sealed (struct mount_plan *plan, const struct mount_folders *f, struct arena *a,
                        struct mur_error **err);

/* What a composed root shows of the host, read-only; each is granted by Landlock too.
 * NULL-terminated. */
extern const char *const mount_system_trees[];
extern const char *const mount_etc_entries[];
/* Files of /etc that are the session's own: who it is, and the names of this machine alone. */
extern const char *const mount_synthetic_etc[];
/* What of /proc tells of the machine and of no process. NULL-terminated. */
extern const char *const mount_public_proc[];

/* True while every folder of the plan is still what lies at its path on the host; else *moved names
 * the one that is not (errno set). */
bool mount_plan_is_current (const struct mount_plan *plan, const char **moved);

/* Builds it, in a process that holds every capability over a session's namespaces;
 * async-signal-safe. Returns NULL, or the step that failed with errno set and *detail naming the
 * path (or NULL). */
const char *mount_plan_apply (const struct mount_plan *plan, const char **detail);
