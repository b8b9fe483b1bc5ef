/* SPDX-License-Identifier: Apache-2.0
 *
 * murmur.lock on disk: read, and replaced with what other programs wrote meanwhile taken in.
 *
 * Always true: a file that is no lock is refused whole and left as it is; the entries are judged
 * before anything is written, and the write is one rename.
 */
#pragma once

#include "artifact/store/lock.h"

/* Reads <dir>/murmur.lock; a missing file gives an empty lock with exists == false. E-RUN-003,
 * E-IO-003. */
struct lock *lock_read (const char *dir, struct mur_error **err);
/* Validates, then replaces the file. What another program changed in it since it was read stays:
 * both sides' entries are put together, and one that both changed differently is refused, with
 * nothing written (E-REG-005). Programs that write at once wait for each other (E-IO-003 after ten
 * seconds). */
bool lock_write (struct lock *l, struct mur_error **err);
