/* SPDX-License-Identifier: Apache-2.0
 *
 * The child's readiness line as its launcher judges it (spec/spawn.md A11).
 */
#pragma once

#include "spawn/child/child.h"

/* Fills session id, records directory (opened), url, door token and formation id from the line, or
 * refuses: E-IO-003. The line is wiped. */
bool readiness_read (struct mur_child *c, char *line, struct mur_error **err);
