/* SPDX-License-Identifier: Apache-2.0
 *
 * Admitting a roster: every member found, verified, read, and fit to be wired to the others
 * (spec/manifest.md 16, spec/spawn.md C3).
 *
 * Always true: nothing is written or started; the first member at fault refuses the roster; each
 * admitted member is bound to the sha256 of the very bytes its manifest was read from.
 */
#pragma once

#include "artifact/store/resolve.h"
#include "manifest/settings/roster.h"

struct admitted_member {
    struct resolved *capsule;
    struct capsule_manifest *manifest; /* secret-less */
    char *overfull;                    /* the text of W-ROS-001, or NULL */
};

struct admission {
    struct roster *roster;           /* edges expanded */
    struct admitted_member *members; /* one for each of roster->members */
    size_t failed_member; /* the member a refusal is about; SIZE_MAX: none in particular */
};

/* Reads the roster (a file or its directory) and admits it. <stores> and <lock> are those of its
 * folder; the lock may be of no file. On false, out->roster is set once the shape was sound.
 * E-ROS-001..008, E-REG-005. */
bool roster_admission (const char *path, const struct stores *stores, const struct lock *lock,
                       struct admission *out, struct mur_error **err);
void admission_clear (struct admission *a);
#define _cleanup_admission_ _cleanup_ (admission_clear)
