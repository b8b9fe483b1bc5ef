/* SPDX-License-Identifier: Apache-2.0
 *
 * Two programs changed one murmur.lock: what both meant is kept.
 */
#pragma once

#include "artifact/store/lock.h"

/* Takes into <mine> what the file says now (<len> bytes of <text>) where <mine> has not changed it
 * since it was read. An entry that both changed, and not to the same, is E-REG-005; a file that is
 * no lock any more E-RUN-003. <mine> is as it was when this fails. */
bool lock_merge (struct lock *mine, const char *text, size_t len, struct mur_error **err);
