/* SPDX-License-Identifier: Apache-2.0
 *
 * What a package must be before it is stored or believed: its bytes whole, and of the kind that its
 * own manifest and whoever declares it say. A launch would refuse the rest later, and to another
 * person.
 */
#pragma once

#include "artifact/package/package.h"

/* Every entry inflates to what its checksum says. Of very large packages the beginning is read.
 * E-IO-003. The archive is open. */
bool package_check_bytes (const struct package *p, struct mur_error **err);
/* What a manifest declares (tool, driver, hook, skill, mcp) is what the package says it is; words
 * that are no kind say nothing. A tool without an input schema may be a driver. E-REG-015 with what
 * to write. */
bool package_check_declared (const struct package *p, const char *name, const char *declared,
                             struct mur_error **err);
/* The component of a tool or driver exports what its kind is called by, where it exports what any
 * is: one of a hook is no tool. What a hook exports is judged when it is opened. E-REG-015. */
bool package_check_component (struct package *p, struct mur_error **err);
