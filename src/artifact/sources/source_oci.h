/* SPDX-License-Identifier: Apache-2.0
 *
 * Artifacts of a registry: one repository each below the place that serves their scope, one tag a
 * version (spec/artifacts.md 8.1).
 *
 * Always true: what murmur.lock pins is asked for by its digest, so that a tag that moved changes
 * nothing; a version that is newest there and older than the pinned one is refused.
 */
#pragma once

#include "artifact/package/package.h"
#include "artifact/sources/source_internal.h"
#include "artifact/sources/source_pick.h"

struct source_wish {
    const char *name;
    const char *version; /* NULL: the newest that fits */
    const char *platform;
    const struct lock *lock; /* may be NULL */
};

/* E-REG-001, E-REG-002, E-REG-005 (the lock pins other bytes of this version), E-REG-006,
 * E-REG-012, E-REG-013, E-REG-014, E-WIT-LEVEL-001. */
bool source_oci_pick (struct remote *r, const struct source *s, const struct source_wish *wish,
                      struct source_pick *out, struct mur_error **err);
/* True when the lock says from which registry this version of an artifact comes that no
 * configuration has a source for. */
bool source_is_pinned (struct remote *r, const struct source_wish *wish);
/* Picks it from there. */
bool source_oci_pick_pinned (struct remote *r, const struct source_wish *wish,
                             struct source_pick *out, struct mur_error **err);
/* The bytes of what was picked, opened. */
struct package *
source_oci_fetch (struct remote *r, const struct source_pick *pick, struct mur_error **err);

/* One package by its reference: what <text> leads to for this platform, under the scope whose
 * source has it, else `local`. */
bool source_oci_pick_ref (struct remote *r, const struct lock *lock, const char *text,
                          const char *platform, struct source_pick *out, struct mur_error **err);
