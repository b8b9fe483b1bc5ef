/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/tree.h"

#include "base/alloc.h"
#include "base/fdio.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define DEEPEST_LEVEL 200
#define PIECE_BYTES   ((size_t)128 << 10)
#define MODE_BITS     07777

struct entry {
    char *path;
    mode_t mode;
    off_t size;
    ino_t inode;
    struct timespec changed;
};

struct listing {
    struct fs_root *root;
    struct entry *items; /* in byte order of their paths */
    size_t len, cap;
};

static void
listing_clear (struct listing *l)
{
    for (size_t i = 0; i < l->len; i++)
        free (l->items[i].path);
    free (l->items);
}

/* --- listing --- */

static bool
refuse (const struct listing *l, const char *path, const char *what, struct mur_error **err)
{
    return mur_fail (err, E_IO_003, "%s/%s is %s", fs_root_path (l->root), path, what);
}

static bool
list_level (struct listing *l, int fd, const char *path, unsigned level, struct mur_error **err);

static bool
list_entry (struct listing *l, int dir_fd, const char *name, const char *above, unsigned level,
            struct mur_error **err)
{
    struct stat st;
    char *path = *above ? x_asprintf ("%s/%s", above, name) : x_strdup (name);
    x_grow (l->items, l->len, l->cap);
    l->items[l->len++] = (struct entry){ .path = path };
    if (fstatat (dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return mur_fail_errno (err, E_IO_003, "cannot look at %s/%s", fs_root_path (l->root), path);
    l->items[l->len - 1] = (struct entry){ .path = path,
                                           .mode = st.st_mode,
                                           .size = st.st_size,
                                           .inode = st.st_ino,
                                           .changed = st.st_ctim };
    if (S_ISREG (st.st_mode))
        return true;
    if (S_ISLNK (st.st_mode))
        return refuse (l, path, "a symbolic link", err);
    if (! S_ISDIR (st.st_mode))
        return refuse (l, path, "neither a file nor a directory", err);
    if (level >= DEEPEST_LEVEL)
        return refuse (l, path, "too many levels deep", err);
    int fd = openat (dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return mur_fail_errno (err, E_IO_003, "cannot read %s/%s", fs_root_path (l->root), path);
    return list_level (l, fd, path, level + 1, err);
}

/* Takes <fd> over. */
static bool
list_level (struct listing *l, int fd, const char *path, unsigned level, struct mur_error **err)
{
    _cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir (fd);
    if (! dir) {
        mur_fail_errno (err, E_IO_003, "cannot read %s/%s", fs_root_path (l->root), path);
        if (fd >= 0)
            close (fd);
        return false;
    }
    for (struct dirent *e; (e = readdir (dir));)
        if (strcmp (e->d_name, ".") != 0 && strcmp (e->d_name, "..") != 0 &&
            ! list_entry (l, dirfd (dir), e->d_name, path, level, err))
            return false;
    return true;
}

static int
by_path (const void *a, const void *b)
{
    return strcmp (((const struct entry *)a)->path, ((const struct entry *)b)->path);
}

static bool
list_tree (struct listing *l, struct mur_error **err)
{
    int fd = openat (fs_root_fd (l->root), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (! list_level (l, fd, "", 0, err))
        return false;
    if (l->len)
        qsort (l->items, l->len, sizeof (*l->items), by_path);
    return true;
}

/* --- digest --- */

/* The bytes of a file, no more than it was said to have. */
static bool
add_content (struct sha256 *d, struct fs_root *root, const struct entry *e, char *piece,
             struct mur_error **err)
{
    _cleanup_close_ int fd = fs_open_read (root, e->path, err);
    off_t left = e->size;
    if (fd < 0)
        return false;
    while (left > 0) {
        ssize_t n = read (fd, piece, (size_t)left < PIECE_BYTES ? (size_t)left : PIECE_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return mur_fail (err, E_IO_003, "%s/%s changed while it was read", fs_root_path (root),
                             e->path);
        sha256_add (d, piece, (size_t)n);
        left -= n;
    }
    return true;
}

bool
tree_digest (struct fs_root *tree, char out[SHA256_HEX_LEN + 1], struct mur_error **err)
{
    _cleanup_ (listing_clear) struct listing l = { .root = tree };
    if (! list_tree (&l, err))
        return false;
    _cleanup_free_ char *piece = x_malloc (PIECE_BYTES);
    struct sha256 *d = sha256_new ();
    bool is_good = true;
    for (size_t i = 0; i < l.len && is_good; i++) {
        const struct entry *e = &l.items[i];
        char head[32];
        snprintf (head, sizeof head, "%c %o ", S_ISDIR (e->mode) ? 'd' : 'f', e->mode & MODE_BITS);
        sha256_add (d, head, strlen (head));
        sha256_add (d, e->path, strlen (e->path) + 1);
        if (S_ISDIR (e->mode))
            continue;
        snprintf (head, sizeof head, "%lld", (long long)e->size);
        sha256_add (d, head, strlen (head) + 1);
        is_good = add_content (d, tree, e, piece, err);
    }
    sha256_finish (d, out);
    return is_good;
}

bool
tree_stamp (struct fs_root *tree, char out[SHA256_HEX_LEN + 1], struct mur_error **err)
{
    _cleanup_ (listing_clear) struct listing l = { .root = tree };
    if (! list_tree (&l, err))
        return false;
    struct sha256 *d = sha256_new ();
    for (size_t i = 0; i < l.len; i++) {
        const struct entry *e = &l.items[i];
        char head[128];
        snprintf (head, sizeof head, "%o %lld %llu %lld.%09ld ", e->mode, (long long)e->size,
                  (unsigned long long)e->inode, (long long)e->changed.tv_sec, e->changed.tv_nsec);
        sha256_add (d, head, strlen (head));
        sha256_add (d, e->path, strlen (e->path) + 1);
    }
    sha256_finish (d, out);
    return true;
}

/* --- copying --- */

static bool
copy_file (const struct listing *l, const struct entry *e, struct fs_root *to, char *piece,
           struct mur_error **err)
{
    _cleanup_close_ int from = fs_open_read (l->root, e->path, err);
    if (from < 0)
        return false;
    /* Whatever regular file is there goes: it may have other names. A link is refused by the open.
     */
    struct stat st;
    if (fs_exists (to, e->path, &st) && S_ISREG (st.st_mode) && ! fs_remove (to, e->path, err))
        return false;
    _cleanup_close_ int fd = fs_open_append (to, e->path, 0600, err);
    if (fd < 0)
        return false;
    for (ssize_t n; (n = read (from, piece, PIECE_BYTES)) != 0;)
        if ((n < 0 && errno != EINTR) || (n > 0 && ! fd_write_all (fd, piece, (size_t)n)))
            return mur_fail_errno (err, E_IO_003, "cannot copy %s/%s", fs_root_path (l->root),
                                   e->path);
    return fchmod (fd, e->mode & MODE_BITS) == 0 ||
           mur_fail_errno (err, E_IO_003, "cannot copy the mode of %s/%s", fs_root_path (l->root),
                           e->path);
}

/* Directories get their modes last: one may forbid writing below it. */
static bool
copy_modes (const struct listing *l, struct fs_root *to, struct mur_error **err)
{
    for (size_t i = l->len; i-- > 0;) {
        const struct entry *e = &l->items[i];
        if (! S_ISDIR (e->mode))
            continue;
        _cleanup_close_ int fd = fs_open_dir (to, e->path, err);
        if (fd < 0)
            return false;
        if (fchmod (fd, e->mode & MODE_BITS) < 0)
            return mur_fail_errno (err, E_IO_003, "cannot copy the mode of %s/%s",
                                   fs_root_path (l->root), e->path);
    }
    return true;
}

bool
tree_copy (struct fs_root *from, struct fs_root *to, struct mur_error **err)
{
    _cleanup_ (listing_clear) struct listing l = { .root = from };
    if (! list_tree (&l, err))
        return false;
    _cleanup_free_ char *piece = x_malloc (PIECE_BYTES);
    for (size_t i = 0; i < l.len; i++) {
        const struct entry *e = &l.items[i];
        if (! (S_ISDIR (e->mode) ? fs_make_dirs (to, e->path, 0700, false, err)
                                 : copy_file (&l, e, to, piece, err)))
            return false;
    }
    return copy_modes (&l, to, err);
}
