/* SPDX-License-Identifier: Apache-2.0
 *
 * Ending a whole formation, through its launcher (spec/cli.md 3, spec/door.md 17).
 *
 * Always true: a member that holds a lifeline is never signalled, because its launcher ends it;
 * with more than one launcher named nothing is signalled at all.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* Signals the launcher its members name, waits for all of them; members that were started by hand
 * are stopped one by one. E-RUN-022 (no such formation runs), E-RUN-024, E-RUN-028. */
bool stop_formation (const char *formation_id, uint64_t timeout_s, struct mur_error **err);
