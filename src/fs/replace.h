/* SPDX-License-Identifier: Apache-2.0
 *
 * Replacing a file whole: a new one beside it, renamed over the old, so that a reader sees either.
 *
 * Always true: whatever fails leaves the old file as it was, and nothing beside it.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

/* A name beside <name> that no reader takes for the real thing: ".<name>.<uuid>.tmp". Owned. */
char *fs_temp_name (const char *name);
/* Writes <data> to the new file <temp> in <dir> and, when <name> is another, renames it to that.
 * With <is_exact> the mode is that whatever the umask says. False with errno, and nothing left. */
bool fs_write_new (int dir, const char *temp, const char *name, const void *data, size_t len,
                   mode_t mode, bool is_exact, bool is_durable);
/* The same under a temporary name, renamed to <name>. */
bool fs_write_and_rename (int dir, const char *name, const void *data, size_t len, mode_t mode,
                          bool is_exact, bool is_durable);

/* Gives an open file or directory exactly this mode. What has it already is left alone: each change
 * costs the file system a record. */
bool fs_ensure_mode (int fd, mode_t mode);
/* Replaces a file below an open directory: unique temp beside it, fsync when <durable>, rename.
 * Exact mode. */
bool fs_replace_at (int dir_fd, const char *name, const void *data, size_t len, mode_t mode,
                    bool durable, struct mur_error **err);
