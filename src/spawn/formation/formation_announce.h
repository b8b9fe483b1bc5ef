/* SPDX-License-Identifier: Apache-2.0
 *
 * Announcing a formation: one line of JSON on stdout, or a block of text on stderr (spec/spawn.md
 * C4). No token is in either.
 */
#pragma once

#include "spawn/formation/formation.h"

/* formation_announce.c: every peer is ready and the entry starts now. */
void formation_announce (const struct formation *f);
