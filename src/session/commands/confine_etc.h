/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of /etc that commands see instead of the host's: who they are, the names of this
 * machine alone, and what of git's system configuration tells nothing.
 */
#pragma once

#include "session/state/session.h"

/* Writes mount_synthetic_etc into the session's own folder and returns it, in the session's arena.
 * NULL with E-RUN-014 (no passwd can hold this home) or E-IO-003. */
const char *confine_write_etc (struct session *s, const char *home, struct mur_error **err);
