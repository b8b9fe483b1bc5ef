/* SPDX-License-Identifier: Apache-2.0
 *
 * What became of a tree of files between two looks at it: which were made, changed and taken away,
 * with their digests.
 *
 * Always true: no link is followed; what is no plain file, and everything below a folder named
 * .git, is passed over; both looks are bounded, and say so when the tree is larger.
 */
#pragma once

#include "base/digest.h"
#include "fs/root.h"

struct tree_look;

enum tree_change {
    TREE_CREATED,
    TREE_MODIFIED,
    TREE_DELETED,
};

/* Never NULL: what cannot be read is not seen. */
struct tree_look *tree_look_new (struct fs_root *tree);
void tree_look_free (struct tree_look *l);
DEFINE_CLEANUP (struct tree_look, tree_look_free)

/* Told of a file in byte order of the paths, all borrowed. <before> and <after> are NULL where
 * there was no file, and where a digest was not taken. */
typedef void tree_change_fn (void *ctx, const char *path, enum tree_change what, const char *before,
                             const char *after);
/* True when the whole tree was seen both times. */
bool
tree_changes (const struct tree_look *before, struct fs_root *tree, tree_change_fn *fn, void *ctx);
