/* SPDX-License-Identifier: Apache-2.0
 *
 * Downloading what was picked, or every package of a release.
 *
 * Always true: the hash is compared before an archive is parsed; nothing is written.
 */
#pragma once

#include "artifact/package/package.h"
#include "artifact/sources/source_pick.h"

/* Downloads, verifies and opens it. E-REG-001, E-REG-002, E-REG-006, E-IO-003. */
struct package *
remote_fetch (struct remote *r, const struct source_pick *pick, struct mur_error **err);

/* Every package of one release of a repository that need not be configured: `mur install
 * github:o/r@tag`. */
struct release_packages {
    struct package **items;
    size_t len;
    uint64_t owner_id;
};
bool remote_fetch_release (struct remote *r, const struct lock *lock, const char *owner,
                           const char *repo, const char *scope, const char *tag,
                           struct release_packages *out, struct mur_error **err);
