/* SPDX-License-Identifier: Apache-2.0
 *
 * Trees of plain files: their digest, whether they were touched, and copies of them that are the
 * same to the byte and mode (spec/records.md 9).
 *
 * Always true: no link is followed on either side; a tree that holds a link, a device, a socket or
 * a FIFO is refused.
 */
#pragma once

#include "base/digest.h"
#include "fs/root.h"

/* The digest over every entry below <tree> in byte order of its path: "d" or "f", a space, the
 * octal mode, a space, the path, NUL, and for a file its length in decimal, NUL and its bytes.
 * E-IO-003 naming what is no plain file, or cannot be read. */
bool tree_digest (struct fs_root *tree, char out[SHA256_HEX_LEN + 1], struct mur_error **err);
/* The digest over what tells of every entry without reading it: path, mode, length, inode and the
 * time of its last change, which nobody sets. Two that are the same: nothing was touched in
 * between. E-IO-003 as above. */
bool tree_stamp (struct fs_root *tree, char out[SHA256_HEX_LEN + 1], struct mur_error **err);
/* Copies every entry of <from> into <to>, modes included; a regular file of the same name is
 * replaced. E-RUN-050 (a link or odd file in the way), E-IO-003. */
bool tree_copy (struct fs_root *from, struct fs_root *to, struct mur_error **err);
