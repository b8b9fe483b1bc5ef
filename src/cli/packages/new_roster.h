/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur new --roster`: a formation of a lead and a worker (spec/cli.md 4).
 */
#pragma once

#include "base/error.h"

/* Creates ./<name> with its roster and two manifests. <index> is a path or an address, NULL: the
 * configured one, else the published one. The same name and choices give the same bytes.
 * E-NEW-003..007, E-IO-003. */
bool new_roster (const char *name, const char *index, struct mur_error **err);
