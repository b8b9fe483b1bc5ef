/* SPDX-License-Identifier: Apache-2.0
 *
 * A held directory below which the runtime reads and writes without following any link
 * (spec/session.md 3.4, spec/containment.md 13), and the latch that remembers every refusal.
 *
 * Always true: paths are relative; an empty, ".", ".." or absolute segment is refused before any
 * system call; every refusal is E-RUN-050 and is pushed to the latch, also when the caller then
 * drops the error.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <sys/stat.h>
#include <sys/types.h>

enum fs_operation {
    FS_WRITE,
    FS_APPEND,
    FS_READ,
    FS_CREATE_DIR,
    FS_REMOVE,
};

enum fs_reason {
    FS_SYMLINK,
    FS_HARD_LINK,
    FS_NOT_A_REGULAR_FILE,
    FS_INVALID_COMPONENT,
};

struct fs_refusal {
    char *path; /* what was asked for, relative to the root (absolute in the records directory) */
    char *refused_at; /* the component at fault */
    enum fs_operation operation;
    enum fs_reason reason;
};

/* Refusals of all roots of one session. Thread-safe. */
struct fs_latch;

struct fs_root;

/* Takes <dir_fd> over. <path> is its absolute path, for messages. <latch> is borrowed and may be
 * NULL. <reports_absolute>: refusals carry absolute paths (records directory). */
struct fs_root *
fs_root_new (int dir_fd, const char *path, struct fs_latch *latch, bool reports_absolute);
void fs_root_free (struct fs_root *r);
DEFINE_CLEANUP (struct fs_root, fs_root_free)
int fs_root_fd (const struct fs_root *r);           /* borrowed */
const char *fs_root_path (const struct fs_root *r); /* borrowed, absolute */

/* Opens for reading: a regular file, whatever its link count, never blocking on a FIFO.
 * Returns an owned descriptor or -1: E-RUN-050, E-IO-001 (absent), E-IO-002 (permission), E-IO-003.
 */
int fs_open_read (struct fs_root *r, const char *path, struct mur_error **err);
/* Opens a directory below the root (owned descriptor, or -1). */
int fs_open_dir (struct fs_root *r, const char *path, struct mur_error **err);
/* Reads a whole file of at most <limit> bytes (E-IO-003 naming the limit when larger). */
bool fs_read (struct fs_root *r, const char *path, size_t limit, struct buf *out,
              struct mur_error **err);
/* Creates <path> and every missing parent (each <mode> whatever the umask when is_exact, else umask
 * applies). An existing directory is fine. */
bool fs_make_dirs (struct fs_root *r, const char *path, mode_t mode, bool is_exact,
                   struct mur_error **err);
/* Replaces a file: temp file in the same directory, then rename. Parents must exist. The temp is
 * removed on failure. An existing link, directory or odd file at <path> is refused. umask applies
 * unless is_exact. */
bool fs_write (struct fs_root *r, const char *path, const void *data, size_t len, mode_t mode,
               bool is_exact, struct mur_error **err);
/* The same for a directory nobody reads yet: a name that is free is written in place, which spares
 * the rename. */
bool fs_create (struct fs_root *r, const char *path, const void *data, size_t len, mode_t mode,
                bool is_exact, struct mur_error **err);
/* Opens for appending, creating it (0666 & ~umask unless exact); refuses links, odd files and link
 * count > 1. Owned fd. */
int fs_open_append (struct fs_root *r, const char *path, mode_t mode, struct mur_error **err);
/* One append of whole bytes (open, write, close). */
bool fs_append (struct fs_root *r, const char *path, const void *data, size_t len,
                struct mur_error **err);
/* Removes a file or a whole tree by descriptor; links inside are unlinked, never followed. Absent
 * is fine. */
bool fs_remove (struct fs_root *r, const char *path, struct mur_error **err);
/* True when something (a link included) is there; fills *st (lstat) when not NULL. */
bool fs_exists (struct fs_root *r, const char *path, struct stat *st);
