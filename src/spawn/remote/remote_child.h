/* SPDX-License-Identifier: Apache-2.0
 *
 * The process that stands for a child on another machine (docs/fleet.md).
 *
 * To its parent it is the child: it says where the door is, holds the records, ends when it is told
 * to or when its parent is gone, and leaves the completion record. What it knows it asks of
 * mur-roost. Always true: when it goes, mur-roost has been told that the child is wanted no more,
 * unless the child had ended.
 */
#pragma once

#include "base/error.h"
#include "base/secret.h"

struct remote_child {
    const struct secret *ticket; /* what mur-roost answers for this child */
    const char *delegation_id;   /* NULL: no lineage, which is refused */
    const char *capsule, *version;
    const char *workdir;       /* the folder its parent made, absolute */
    const char *roost_url;     /* NULL: not set, which is refused */
    const char *records_store; /* where the child's records went; NULL: they stay with it */
};

/* Until the child's end. 0: it ended well; 1: anything else, with *err where it never was ready;
 * 143: it was ended. */
int remote_child_run (const struct remote_child *what, struct mur_error **err);
