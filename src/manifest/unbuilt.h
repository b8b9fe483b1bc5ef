/* SPDX-License-Identifier: Apache-2.0
 *
 * What a manifest may declare that this build cannot honour yet: refused by name, never ignored.
 *
 * One table of key paths; building a part removes its row. Callers: cli/cmd_run.c right after the
 * manifest was read.
 */
#pragma once

#include "manifest/capsule.h"

/* Refuses the first declared key whose part is not built, with its position and what to do.
 * E-MAN-003. */
bool manifest_refuse_unbuilt (const struct capsule_manifest *m, struct mur_error **err);
