/* SPDX-License-Identifier: Apache-2.0
 *
 * Every operation splits its path, checks each segment, walks the parents with O_NOFOLLOW |
 * O_DIRECTORY and only then touches the last segment. What a capsule planted (a link, a FIFO, a
 * second name) is refused and latched, never followed.
 */
#include "fs/internal.h"
#include "fs/latch.h"
#include "fs/paths.h"

#include "base/alloc.h"
#include "base/fdio.h"
#include "base/ids.h"
#include "fs/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

struct fs_root {
    int fd;
    char *path;
    struct fs_latch *latch;
    bool reports_absolute;
};

/* One operation under way: what was asked, and the path split into segments. */
struct walk {
    struct fs_root *root;
    const char *path;
    enum fs_operation operation;
    char *text; /* the path, cut at each slash */
    struct strv parts;
};

static void
walk_free (struct walk *w)
{
    free (w->text);
    strv_free (&w->parts);
}

struct fs_root *
fs_root_new (int dir_fd, const char *path, struct fs_latch *latch, bool reports_absolute)
{
    struct fs_root *r = x_new0 (struct fs_root);
    r->fd = dir_fd;
    r->path = x_strdup (path);
    r->latch = latch;
    r->reports_absolute = reports_absolute;
    return r;
}

void
fs_root_free (struct fs_root *r)
{
    if (! r)
        return;
    if (r->fd >= 0)
        close (r->fd);
    free (r->path);
    free (r);
}

int
fs_root_fd (const struct fs_root *r)
{
    return r->fd;
}

const char *
fs_root_path (const struct fs_root *r)
{
    return r->path;
}

static char *
reported (const struct fs_root *r, const char *path)
{
    return r->reports_absolute ? x_asprintf ("%s/%s", r->path, path) : x_strdup (path);
}

/* Latches a refusal at the component that ends after <depth> segments and sets E-RUN-050. Always
 * false. */
static bool
refuse (const struct walk *w, size_t depth, enum fs_reason reason, struct mur_error **err)
{
    static const char *const found[] = {
        [FS_SYMLINK] = "a symbolic link",
        [FS_HARD_LINK] = "a file with more than one name",
        [FS_NOT_A_REGULAR_FILE] = "not a regular file or directory of the expected kind",
        [FS_INVALID_COMPONENT] = "not a plain path component",
    };
    _cleanup_buf_ struct buf at = { 0 };
    for (size_t i = 0; i < depth && i < w->parts.len; i++)
        buf_printf (&at, "%s%s", i ? "/" : "", w->parts.items[i]);
    if (! at.data)
        buf_puts (&at, w->path);
    mur_fail (err, E_RUN_050, "%s in %s is %s: refused to %s it", at.data, w->root->path,
              found[reason],
              w->operation == FS_CREATE_DIR ? "create a directory through"
                                            : fs_operation_name (w->operation));
    mur_hint (err, "remove %s/%s, or use another --workdir", w->root->path, at.data);
    if (w->root->latch)
        fs_latch_push (w->root->latch,
                       (struct fs_refusal){ reported (w->root, w->path),
                                            reported (w->root, at.data), w->operation, reason });
    return false;
}

/* Splits and checks the path. */
static bool
walk_start (struct walk *w, struct fs_root *root, const char *path, enum fs_operation operation,
            struct mur_error **err)
{
    *w = (struct walk){ .root = root, .path = path, .operation = operation };
    w->text = x_strdup (path);
    char *rest = w->text;
    for (char *part; (part = strsep (&rest, "/"));)
        strv_push (&w->parts, part);
    for (size_t i = 0; i < w->parts.len; i++) {
        const char *part = w->parts.items[i];
        if (! *part || str_eq (part, ".") || str_eq (part, ".."))
            return refuse (w, i + 1, FS_INVALID_COMPONENT, err);
    }
    return true;
}

static const char *
last_part (const struct walk *w)
{
    return w->parts.items[w->parts.len - 1];
}

/* Why a component cannot be walked through: a refusal when something odd is there, else the plain
 * failure. Always -1. */
static int
blocked (const struct walk *w, int dir_fd, size_t depth, struct mur_error **err)
{
    int saved = errno;
    struct stat st;
    if ((saved == ELOOP || saved == ENOTDIR) &&
        fstatat (dir_fd, w->parts.items[depth - 1], &st, AT_SYMLINK_NOFOLLOW) == 0) {
        refuse (w, depth, S_ISLNK (st.st_mode) ? FS_SYMLINK : FS_NOT_A_REGULAR_FILE, err);
        return -1;
    }
    errno = saved;
    enum diag_code code = saved == ENOENT                     ? E_IO_001
                          : saved == EACCES || saved == EPERM ? E_IO_002
                                                              : E_IO_003;
    mur_fail_errno (err, code, "cannot %s %s/%s", fs_operation_name (w->operation), w->root->path,
                    w->path);
    return -1;
}

/* Opens the directory made of the first <depth> segments. Owned descriptor, or -1. */
static int
open_level (const struct walk *w, size_t depth, struct mur_error **err)
{
    _cleanup_close_ int dir = fcntl (w->root->fd, F_DUPFD_CLOEXEC, 3);
    if (dir < 0)
        return mur_fail_errno (err, E_IO_003, "cannot use %s", w->root->path), -1;
    for (size_t i = 0; i < depth; i++) {
        int next = openat (dir, w->parts.items[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0)
            return blocked (w, dir, i + 1, err);
        close (dir);
        dir = next;
    }
    return steal_fd (&dir);
}

static int
open_parent (const struct walk *w, struct mur_error **err)
{
    return open_level (w, w->parts.len - 1, err);
}

int
fs_open_dir (struct fs_root *r, const char *path, struct mur_error **err)
{
    _cleanup_ (walk_free) struct walk w = { 0 };
    return walk_start (&w, r, path, FS_READ, err) ? open_level (&w, w.parts.len, err) : -1;
}

int
fs_open_read (struct fs_root *r, const char *path, struct mur_error **err)
{
    _cleanup_ (walk_free) struct walk w = { 0 };
    if (! walk_start (&w, r, path, FS_READ, err))
        return -1;
    _cleanup_close_ int dir = open_parent (&w, err);
    if (dir < 0)
        return -1;
    /* O_NONBLOCK: a FIFO must not hold the runtime; for a regular file it means nothing. */
    _cleanup_close_ int fd =
        openat (dir, last_part (&w), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        if (errno == ENXIO) /* a socket */
            return refuse (&w, w.parts.len, FS_NOT_A_REGULAR_FILE, err), -1;
        return blocked (&w, dir, w.parts.len, err);
    }
    struct stat st;
    if (fstat (fd, &st) < 0)
        return mur_fail_errno (err, E_IO_003, "cannot read %s/%s", r->path, path), -1;
    if (! S_ISREG (st.st_mode))
        return refuse (&w, w.parts.len, FS_NOT_A_REGULAR_FILE, err), -1;
    return steal_fd (&fd);
}

bool
fs_read (struct fs_root *r, const char *path, size_t limit, struct buf *out, struct mur_error **err)
{
    _cleanup_close_ int fd = fs_open_read (r, path, err);
    if (fd < 0)
        return false;
    if (fd_read_all (fd, limit, out))
        return true;
    if (errno == EFBIG)
        return mur_fail (err, E_IO_003, "%s/%s is larger than %zu bytes", r->path, path, limit);
    return mur_fail_errno (err, E_IO_003, "cannot read %s/%s", r->path, path);
}

bool
fs_make_dirs (struct fs_root *r, const char *path, mode_t mode, bool is_exact,
              struct mur_error **err)
{
    _cleanup_ (walk_free) struct walk w = { 0 };
    if (! walk_start (&w, r, path, FS_CREATE_DIR, err))
        return false;
    _cleanup_close_ int dir = fcntl (r->fd, F_DUPFD_CLOEXEC, 3);
    if (dir < 0)
        return mur_fail_errno (err, E_IO_003, "cannot use %s", r->path);
    for (size_t i = 0; i < w.parts.len; i++) {
        const char *part = w.parts.items[i];
        bool is_new = mkdirat (dir, part, mode) == 0;
        if (! is_new && errno != EEXIST)
            return blocked (&w, dir, i + 1, err), false;
        int next = openat (dir, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0)
            return blocked (&w, dir, i + 1, err), false;
        close (dir);
        dir = next;
        if (is_new && is_exact && fchmod (dir, mode) < 0)
            return mur_fail_errno (err, E_IO_003, "cannot set the mode of %s/%s", r->path, path);
    }
    return true;
}

static bool
write_file (struct fs_root *r, const char *path, const void *data, size_t len, mode_t mode,
            bool is_exact, bool tries_in_place, struct mur_error **err)
{
    _cleanup_ (walk_free) struct walk w = { 0 };
    if (! walk_start (&w, r, path, FS_WRITE, err))
        return false;
    _cleanup_close_ int dir = open_parent (&w, err);
    if (dir < 0)
        return false;
    if (tries_in_place) {
        if (fs_write_new (dir, last_part (&w), last_part (&w), data, len, mode, is_exact, false))
            return true;
        if (errno != EEXIST)
            return mur_fail_errno (err, E_IO_003, "cannot write %s/%s", r->path, path);
    }
    struct stat st;
    if (fstatat (dir, last_part (&w), &st, AT_SYMLINK_NOFOLLOW) == 0) {
        if (S_ISLNK (st.st_mode))
            return refuse (&w, w.parts.len, FS_SYMLINK, err);
        if (! S_ISREG (st.st_mode))
            return refuse (&w, w.parts.len, FS_NOT_A_REGULAR_FILE, err);
    }
    if (! fs_write_and_rename (dir, last_part (&w), data, len, mode, is_exact, false))
        return mur_fail_errno (err, E_IO_003, "cannot write %s/%s", r->path, path);
    return true;
}

bool
fs_write (struct fs_root *r, const char *path, const void *data, size_t len, mode_t mode,
          bool is_exact, struct mur_error **err)
{
    return write_file (r, path, data, len, mode, is_exact, false, err);
}

bool
fs_create (struct fs_root *r, const char *path, const void *data, size_t len, mode_t mode,
           bool is_exact, struct mur_error **err)
{
    return write_file (r, path, data, len, mode, is_exact, true, err);
}

int
fs_open_append (struct fs_root *r, const char *path, mode_t mode, struct mur_error **err)
{
    _cleanup_ (walk_free) struct walk w = { 0 };
    if (! walk_start (&w, r, path, FS_APPEND, err))
        return -1;
    _cleanup_close_ int dir = open_parent (&w, err);
    if (dir < 0)
        return -1;
    _cleanup_close_ int fd = openat (
        dir, last_part (&w),
        O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, mode);
    if (fd < 0) {
        if (errno == ENXIO || errno == EISDIR)
            return refuse (&w, w.parts.len, FS_NOT_A_REGULAR_FILE, err), -1;
        return blocked (&w, dir, w.parts.len, err);
    }
    struct stat st;
    if (fstat (fd, &st) < 0)
        return mur_fail_errno (err, E_IO_003, "cannot append to %s/%s", r->path, path), -1;
    if (! S_ISREG (st.st_mode))
        return refuse (&w, w.parts.len, FS_NOT_A_REGULAR_FILE, err), -1;
    if (st.st_nlink > 1)
        return refuse (&w, w.parts.len, FS_HARD_LINK, err), -1;
    return steal_fd (&fd);
}

bool
fs_append (struct fs_root *r, const char *path, const void *data, size_t len,
           struct mur_error **err)
{
    _cleanup_close_ int fd = fs_open_append (r, path, 0666, err);
    if (fd < 0)
        return false;
    if (! fd_write_all (fd, data, len))
        return mur_fail_errno (err, E_IO_003, "cannot append to %s/%s", r->path, path);
    return true;
}

bool
fs_remove (struct fs_root *r, const char *path, struct mur_error **err)
{
    _cleanup_ (walk_free) struct walk w = { 0 };
    if (! walk_start (&w, r, path, FS_REMOVE, err))
        return false;
    struct mur_error *caught = NULL;
    _cleanup_close_ int dir = open_parent (&w, &caught);
    if (dir < 0) {
        if (caught->code != E_IO_001)
            return mur_propagate (err, caught);
        mur_error_free (caught);
        return true;
    }
    return fs_remove_tree_at (dir, last_part (&w), err) ||
           mur_context (err, "cannot remove %s/%s", r->path, path);
}

bool
fs_exists (struct fs_root *r, const char *path, struct stat *st)
{
    _cleanup_ (walk_free) struct walk w = { 0 };
    _cleanup_error_ struct mur_error *ignored = NULL;
    if (! walk_start (&w, r, path, FS_READ, &ignored))
        return false;
    _cleanup_close_ int dir = open_parent (&w, &ignored);
    struct stat unused;
    return dir >= 0 && fstatat (dir, last_part (&w), st ? st : &unused, AT_SYMLINK_NOFOLLOW) == 0;
}
