/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of a recorded moment put back into a folder, or looked at as they lie in the record.
 *
 * Always true: only names of one level are made, and only in the folder given; what stood there
 * before is gone.
 */
#pragma once

#include "replay/record/record.h"

/* Empties <dir_fd> and fills it. E-RPL-004 (a listing or body is not what was recorded), E-IO-003.
 */
bool tree_restore (const struct record *r, const char *sha256, int dir_fd, struct mur_error **err);
/* Every body of that moment is there and is what its name says. E-RPL-004. */
bool tree_check (const struct record *r, const char *sha256, struct mur_error **err);
/* The first path at which two moments differ, as a path of either; NULL: none, or the listings
 * cannot be read. Owned. */
char *tree_first_change (const struct record *then, const char *then_sha, const char *now_dir,
                         const char *now_sha);
