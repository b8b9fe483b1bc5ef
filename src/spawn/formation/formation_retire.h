/* SPDX-License-Identifier: Apache-2.0
 *
 * Retiring old formations of a project once a launch of it is over, by the entry member's
 * trace.retain (spec/spawn.md C7, spec/records.md 7).
 *
 * Always true: only real directories named by a formation id whose marker names this project are
 * looked at; what may be alive stays; neither this formation nor one minted later is touched.
 */
#pragma once

#include "spawn/formation/formation.h"

/* formation_retire.c: once no member is left, removes what the entry member's trace.retain does not
 * keep of this project's earlier formations, a line on stderr each. */
void formation_retire (const struct formation *f, const struct capsule_manifest *entry);
