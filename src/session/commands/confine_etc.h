/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of /etc that commands see instead of the host's: who they are, the names of this
 * machine alone, and what of git's system configuration tells nothing.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"

/* Writes mount_synthetic_etc into the folder <dir> and returns it, in the arena.
 * NULL with E-RUN-014 (no passwd can hold this home) or E-IO-003. */
const char *
confine_write_etc (struct arena *a, const char *dir, const char *home, struct mur_error **err);
