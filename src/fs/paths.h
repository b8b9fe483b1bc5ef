/* SPDX-License-Identifier: Apache-2.0
 *
 * Paths outside any held root: canonical forms, no-link absolute walks, removal of trees.
 */
#pragma once

#include "fs/root.h"

/* The same by an ordinary path, whose folder must exist; what a killed writer left in it goes. */
bool fs_replace_path (const char *path, const void *data, size_t len, mode_t mode, bool durable,
                      struct mur_error **err);
/* Removes the contents of a directory and the directory itself, by descriptor. Links in it are
 * unlinked, not followed; a mount in it is not entered (E-IO-003), however deep it is. */
bool fs_remove_tree_at (int dir_fd, const char *name, struct mur_error **err);
/* Opens an absolute path component by component, following no link, creating missing levels with
 * exactly 0700 when <create>. Existing levels keep their mode. Returns an owned O_DIRECTORY
 * descriptor or -1 (E-IO-003 naming the component). */
int fs_walk_absolute (const char *path, bool create, struct mur_error **err);
/* Opens a file given by an ordinary path for reading, without waiting on a pipe nobody writes to,
 * and tells what it is. A descriptor the caller owns, or -1: E-IO-001, E-IO-002, E-IO-003. */
int fs_open_path (const char *path, struct stat *st, struct mur_error **err);
/* Which file it is and how it was left: device, inode, length, owner, mode, times. No two that
 * differ have the same, but for a write within the clock's tick. */
#define FS_STAMP_SIZE 160
void fs_file_stamp (const struct stat *st, char out[FS_STAMP_SIZE]);
/* Reads a whole file given by an ordinary path (links followed): E-IO-001, E-IO-002, E-IO-003. */
/* More than <limit> bytes are E-IO-003 with errno_value EFBIG, before any is read where the file
 * tells its size. */
bool fs_read_path (const char *path, size_t limit, struct buf *out, struct mur_error **err);
/* The same of an ordinary file alone: a device, a pipe or a socket is E-IO-003. */
bool fs_read_regular (const char *path, size_t limit, struct buf *out, struct mur_error **err);
/* The path as messages show it: from the root, as written otherwise. Owned. */
char *fs_shown_path (const char *path);
/* Absolute path with its nearest existing ancestor canonicalised and the rest appended, "." and
 * ".." removed. Owned. */
char *fs_canonical_path (const char *path, struct mur_error **err);
/* True when the absolute path is <dir> or lies below it, by component; "/" holds every one. */
bool fs_path_is_within (const char *path, const char *dir);
