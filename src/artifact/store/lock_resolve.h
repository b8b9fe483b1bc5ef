/* SPDX-License-Identifier: Apache-2.0
 *
 * A murmur.lock that a merge of two branches left with conflict marks: named, and mended.
 *
 * Always true: a pin both sides have stays as it is; of two that differ one is taken whole, by the
 * manifest's version, and other bytes of one version are never chosen between.
 */
#pragma once

#include "artifact/store/lock.h"

struct lock_resolution {
    /* The version the project's manifest names for an artifact, or NULL. */
    const char *(*wanted) (void *ctx, const char *name);
    void *ctx;
};

/* Puts the sides of <dir>/murmur.lock together and writes it. *kept: pins in it; 0 when there was
 * no mark, and nothing is written. E-RUN-003 (a side is no lock), E-REG-005 (two digests of one
 * version), E-IO-003. */
bool lock_resolve (const char *dir, const struct lock_resolution *how, size_t *kept,
                   struct mur_error **err);
