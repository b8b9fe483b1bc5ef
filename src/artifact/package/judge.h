/* SPDX-License-Identifier: Apache-2.0
 *
 * What is looked at before a package is stored or believed: that its bytes are whole, and whether
 * it is of the kind that its own manifest and whoever declares it say. Who declares it decides
 * that, so it is a warning.
 */
#pragma once

#include "artifact/package/package.h"

/* Every entry inflates to what its checksum says. Of very large packages the beginning is read.
 * E-IO-003. The archive is open. */
bool package_check_bytes (const struct package *p, struct mur_error **err);
/* Why what a manifest declares (tool, driver, hook, skill, mcp) is not what the package says it is,
 * and what to write (owned); NULL: it is, or the package's word is no kind. A tool without an input
 * schema may be a driver. */
char *package_misdeclared (const struct package *p, const char *name, const char *declared);
/* The same of a component that exports what another kind than its package's is called by. */
char *package_miscast (struct package *p);
