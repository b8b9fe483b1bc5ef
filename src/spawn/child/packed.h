/* SPDX-License-Identifier: Apache-2.0
 *
 * What a launcher reads of a child's packed manifest before there is a child: the few declarations
 * that decide how it is started, and nothing else of it (spec/spawn.md A4, A6).
 *
 * Always true: no ${VAR} is resolved, and a manifest that says something odd elsewhere is still
 * readable here.
 */
#pragma once

#include "artifact/store/store.h"

#define PACKED_WORKDIR_MAX_BYTES ((uint64_t)10 << 30) /* when it declares none */

struct packed {
    struct strv env_allow;      /* capabilities.env.allow, in order, no name twice */
    struct strv spawn_allow;    /* capabilities.spawn.allow, the same */
    uint64_t workdir_max_bytes; /* capabilities.resources.workdir_max_bytes */
};

void packed_clear (struct packed *p);
#define _cleanup_packed_ _cleanup_ (packed_clear)

/* Reads name@version where a launch by name would take it from. E-REG-001 (in no store), or what
 * the store or the archive says: E-REG-*, E-IO-*, E-MAN-*. */
bool packed_read (const struct stores *stores, const char *name, const char *version,
                  struct packed *out, struct mur_error **err);
