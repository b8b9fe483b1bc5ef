/* SPDX-License-Identifier: Apache-2.0
 *
 * A child's work folder: <parent records>/children/<bare name>-<16 hex> (spec/spawn.md A5).
 *
 * No link is followed at any step, both levels are 0700 exactly, and the descriptor is what later
 * reads use.
 */
#pragma once

#include "base/error.h"

#include <sys/types.h>

struct work_folder {
    char *path; /* absolute */
    int fd;
    int children_fd; /* the directory it lies in */
    dev_t dev;
    ino_t ino;
};

/* A fresh path of that form each time; nothing is touched. Owned. */
char *work_folder_path (const char *parent_records_dir, const char *capsule);
/* Makes one. E-RUN-050 (a link or no directory on the way), E-IO-003. */
bool work_folder_make (const char *parent_records_dir, const char *capsule, struct work_folder *out,
                       struct mur_error **err);
/* Takes it away again with whatever was put into it: its child never became one. */
void work_folder_discard (struct work_folder *f);
/* Lets go of one that stays. */
void work_folder_close (struct work_folder *f);
