/* SPDX-License-Identifier: Apache-2.0
 *
 * Putting a payload into a store: check everything, write three temporary files, rename them in
 * order (spec/artifacts.md 6).
 *
 * Always true: payload, hash, sidecar is the order names appear in, so that a payload that can be
 * found can be verified; a failure puts back what was there; a killed process leaves at worst
 * hidden temporary files, swept by a later write.
 */
#pragma once

#include "artifact/store/store.h"

enum store_overwrite {
    STORE_PUBLISH, /* an existing payload is E-REG-003 */
    STORE_INSTALL, /* an existing trio is replaced, restored on failure */
};

struct store_write {
    const char *name; /* full */
    const char *version;
    const char *platform;        /* NULL: untagged */
    bool forces_native;          /* publish --platform */
    const char *expected_sha256; /* NULL: whatever the bytes hash to */
    bool has_owner_id;
    uint64_t owner_id;
    enum store_overwrite overwrite;
};

/* Checks (E-REG-002, E-REG-004 never, E-REG-011, E-IO-003) and stores a package; *path (owned, may
 * be NULL) is the archive. */
bool store_put (const struct store *s, struct package *p, const struct store_write *w, char **path,
                struct mur_error **err);
