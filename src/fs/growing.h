/* SPDX-License-Identifier: Apache-2.0
 *
 * A file that is replaced piece by piece: what is too large to be held is written beside it and
 * takes its name once all of it is there.
 *
 * Always true: until it is finished, and whatever fails, the old file is as it was, and nothing
 * stays beside it.
 */
#pragma once

#include "base/cleanup.h"
#include "base/error.h"

#include <stddef.h>
#include <sys/types.h>

struct fs_growing;

/* By an ordinary path, whose folder must exist. NULL: E-IO-003. */
struct fs_growing *fs_growing_new (const char *path, mode_t mode, struct mur_error **err);
bool fs_growing_append (struct fs_growing *g, const void *data, size_t len, struct mur_error **err);
bool fs_growing_finish (struct fs_growing *g, struct mur_error **err);
void fs_growing_free (struct fs_growing *g);
DEFINE_CLEANUP (struct fs_growing, fs_growing_free)
