/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/paths.h"

#include "fs/internal.h"

#include "base/alloc.h"
#include "base/fdio.h"
#include "base/ids.h"
#include "fs/replace.h"
#include "fs/temporaries.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>

bool
fs_replace_path (const char *path, const void *data, size_t len, mode_t mode, bool durable,
                 struct mur_error **err)
{
    const char *slash = strrchr (path, '/');
    _cleanup_free_ char *dir =
        slash ? x_strndup (path, (size_t)(slash - path) + 1) : x_strdup (".");
    _cleanup_close_ int fd = open (dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return mur_fail_errno (err, E_IO_003, "cannot open %s", dir);
    if (! fs_replace_at (fd, slash ? slash + 1 : path, data, len, mode, durable, err))
        return mur_context (err, "cannot write %s", path);
    fs_temporaries_sweep (fd, 0, NULL); /* of one that was killed here */
    return true;
}

/* One removal of a tree. Whoever made the tree may still be at it, and may have made it to be hard
 * to remove: nothing is followed, no other mount is entered, and what lies too deep is brought up.
 */
struct removal {
    int top_fd;     /* the tree's own directory; -1 before it is open */
    unsigned moved; /* directories brought up into it since it was last listed */
};

#define DEEPEST 100 /* descriptors are held on the way down, two a level */

/* Opens a directory for removing what is in it; EXDEV when something is mounted there. */
static int
open_own_dir (int dir_fd, const char *name)
{
    const struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                                  .resolve = RESOLVE_NO_XDEV };
    int fd = (int)syscall (SYS_openat2, dir_fd, name, &how, sizeof how);
    if (fd >= 0 || errno != ENOSYS)
        return fd;
    struct stat here, there;
    fd = openat (dir_fd, name, (int)how.flags);
    if (fd >= 0 &&
        (fstat (dir_fd, &here) < 0 || fstat (fd, &there) < 0 || here.st_dev != there.st_dev)) {
        close (fd);
        errno = EXDEV;
        return -1;
    }
    return fd;
}

/* Gives the owner of a directory the right to list it, whatever lies at its name by now. */
static bool
open_up (int dir_fd, const char *name)
{
    char path[64];
    _cleanup_close_ int fd = openat (dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    snprintf (path, sizeof path, "/proc/self/fd/%d", fd);
    return fd >= 0 && chmod (path, 0700) == 0;
}

static bool remove_entries (struct removal *r, int dir_fd, unsigned depth, struct mur_error **err);

/* Renames a directory into the top of the tree. */
static bool
bring_up (struct removal *r, int dir_fd, const char *name)
{
    char unique[37];
    uuid_text (unique);
    if (renameat (dir_fd, name, r->top_fd, unique) < 0)
        return false;
    r->moved++;
    return true;
}

/* Entries of a directory its owner may not write to cannot be removed, not even by the owner. */
static void
make_writable (int fd)
{
    struct stat st;
    if (fstat (fd, &st) == 0 && (st.st_mode & S_IRWXU) != S_IRWXU)
        (void)fchmod (fd, S_IRWXU);
}

static bool
remove_dir (struct removal *r, int dir_fd, const char *name, unsigned depth, struct mur_error **err)
{
    if (depth > DEEPEST && bring_up (r, dir_fd, name))
        return true;
    _cleanup_close_ int fd = open_own_dir (dir_fd, name);
    if (fd < 0 && errno == EACCES && open_up (dir_fd, name))
        fd = open_own_dir (dir_fd, name);
    if (fd < 0 && errno == EXDEV)
        return mur_fail (err, E_IO_003, "cannot remove %s: something is mounted there", name);
    if (fd < 0)
        return mur_fail_errno (err, E_IO_003, "cannot remove %s", name);
    make_writable (fd);
    if (depth == 0)
        r->top_fd = fd;
    do {
        r->moved = depth == 0 ? 0 : r->moved;
        if (! remove_entries (r, fd, depth + 1, err))
            return false;
    } while (depth == 0 && r->moved);
    if (unlinkat (dir_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return mur_fail_errno (err, E_IO_003, "cannot remove %s", name);
    return true;
}

static bool
remove_one (struct removal *r, int dir_fd, const char *name, unsigned depth, struct mur_error **err)
{
    if (unlinkat (dir_fd, name, 0) == 0 || errno == ENOENT)
        return true;
    if (errno != EISDIR && errno != EPERM)
        return mur_fail_errno (err, E_IO_003, "cannot remove %s", name);
    return remove_dir (r, dir_fd, name, depth, err);
}

static bool
remove_entries (struct removal *r, int dir_fd, unsigned depth, struct mur_error **err)
{
    int copy = fcntl (dir_fd, F_DUPFD_CLOEXEC, 3);
    _cleanup_closedir_ DIR *dir = copy < 0 ? NULL : fdopendir (copy);
    if (! dir) {
        if (copy >= 0)
            close (copy);
        return mur_fail_errno (err, E_IO_003, "cannot list a directory");
    }
    rewinddir (dir);
    for (;;) {
        errno = 0;
        struct dirent *entry = readdir (dir);
        if (! entry)
            return errno == 0 || mur_fail_errno (err, E_IO_003, "cannot list a directory");
        if (! str_eq (entry->d_name, ".") && ! str_eq (entry->d_name, "..") &&
            ! remove_one (r, dir_fd, entry->d_name, depth, err))
            return false;
    }
}

bool
fs_remove_tree_at (int dir_fd, const char *name, struct mur_error **err)
{
    struct removal r = { .top_fd = -1 };
    return remove_one (&r, dir_fd, name, 0, err);
}

int
fs_walk_absolute (const char *path, bool create, struct mur_error **err)
{
    if (path[0] != '/')
        return mur_fail (err, E_IO_003, "%s is not an absolute path", path), -1;
    _cleanup_close_ int dir = open ("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_free_ char *text = x_strdup (path);
    char *rest = text;
    for (char *part; (part = strsep (&rest, "/"));) {
        if (! *part)
            continue;
        if (str_eq (part, ".") || str_eq (part, ".."))
            return mur_fail (err, E_IO_003, "%s: the component %s is not a plain name", path, part),
                   -1;
        bool is_new = create && mkdirat (dir, part, 0700) == 0;
        int next = openat (dir, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0) {
            struct stat st;
            int saved = errno;
            bool is_link =
                fstatat (dir, part, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK (st.st_mode);
            errno = saved;
            if (is_link)
                return mur_fail (err, E_IO_003, "%s: the component %s is a symbolic link", path,
                                 part),
                       -1;
            return mur_fail_errno (err, E_IO_003, "%s: cannot open the component %s", path, part),
                   -1;
        }
        close (dir);
        dir = next;
        if (is_new)
            (void)fchmod (dir, 0700); /* the umask may have taken owner bits */
    }
    return steal_fd (&dir);
}

char *
fs_shown_path (const char *path)
{
    _cleanup_free_ char *cwd = path[0] == '/' ? NULL : getcwd (NULL, 0);
    if (! cwd)
        return x_strdup (path);
    while (str_starts (path, "./"))
        path += 2 + strspn (path + 2, "/");
    return x_asprintf ("%s%s%s", str_eq (cwd, "/") ? "" : cwd, path[0] ? "/" : "", path);
}

static bool
refuse_reading (const char *path, enum diag_code code, const char *why, struct mur_error **err)
{
    int saved = errno;
    _cleanup_free_ char *shown = fs_shown_path (path);
    errno = saved;
    return why ? mur_fail (err, code, "cannot read %s: %s", shown, why)
               : mur_fail_errno (err, code, "cannot read %s", shown);
}

int
fs_open_path (const char *path, struct stat *st, struct mur_error **err)
{
    _cleanup_close_ int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat (fd, st) < 0) {
        enum diag_code code = errno == ENOENT || errno == ENOTDIR ? E_IO_001
                              : errno == EACCES                   ? E_IO_002
                                                                  : E_IO_003;
        return refuse_reading (path, code, NULL, err), -1;
    }
    if (S_ISDIR (st->st_mode)) {
        errno = EISDIR;
        return refuse_reading (path, E_IO_003, NULL, err), -1;
    }
    return steal_fd (&fd);
}

static bool
refuse_large (const char *path, size_t limit, struct mur_error **err)
{
    _cleanup_free_ char *shown = fs_shown_path (path);
    mur_fail (err, E_IO_003, "%s is larger than %zu bytes", shown, limit);
    if (err && *err)
        (*err)->errno_value = EFBIG;
    return false;
}

static bool
read_opened (int fd, const struct stat *st, const char *path, size_t limit, struct buf *out,
             struct mur_error **err)
{
    if (S_ISREG (st->st_mode)) {
        /* What is known to be too large is not begun. Some files (/proc) tell no size. */
        if (st->st_size > 0 && (uint64_t)st->st_size > limit)
            return refuse_large (path, limit, err);
    } else {
        /* A pipe given by a person (/dev/stdin, <(...)) is read to its end, so it blocks again. */
        (void)fcntl (fd, F_SETFL, 0);
    }
    if (fd_read_all (fd, limit, out))
        return true;
    return errno == EFBIG ? refuse_large (path, limit, err)
                          : refuse_reading (path, E_IO_003, NULL, err);
}

void
fs_file_stamp (const struct stat *st, char out[FS_STAMP_SIZE])
{
    snprintf (out, FS_STAMP_SIZE, "%llu %llu %lld %u %o %lld.%09ld %lld.%09ld",
              (unsigned long long)st->st_dev, (unsigned long long)st->st_ino,
              (long long)st->st_size, st->st_uid, st->st_mode & 07777U,
              (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec, (long long)st->st_ctim.tv_sec,
              st->st_ctim.tv_nsec);
}

bool
fs_read_path (const char *path, size_t limit, struct buf *out, struct mur_error **err)
{
    struct stat st;
    _cleanup_close_ int fd = fs_open_path (path, &st, err);
    return fd >= 0 && read_opened (fd, &st, path, limit, out, err);
}

bool
fs_read_regular (const char *path, size_t limit, struct buf *out, struct mur_error **err)
{
    struct stat st;
    _cleanup_close_ int fd = fs_open_path (path, &st, err);
    if (fd < 0)
        return false;
    if (! S_ISREG (st.st_mode))
        return refuse_reading (path, E_IO_003, "it is no regular file", err);
    return read_opened (fd, &st, path, limit, out, err);
}

/* Appends <rest> to the canonical <base>, dropping "." and resolving ".." by name. */
static char *
append_lexically (const char *base, const char *rest)
{
    _cleanup_free_ char *text = x_strdup (rest);
    struct buf out = { 0 };
    buf_puts (&out, str_eq (base, "/") ? "" : base);
    char *at = text;
    for (char *part; (part = strsep (&at, "/"));) {
        if (! *part || str_eq (part, "."))
            continue;
        if (str_eq (part, "..")) {
            char *slash = out.data ? strrchr (out.data, '/') : NULL;
            buf_truncate (&out, slash ? (size_t)(slash - out.data) : 0);
            continue;
        }
        buf_printf (&out, "/%s", part);
    }
    if (out.len == 0)
        buf_puts (&out, "/");
    return buf_steal (&out);
}

char *
fs_canonical_path (const char *path, struct mur_error **err)
{
    _cleanup_free_ char *whole = NULL;
    if (path[0] == '/') {
        whole = x_strdup (path);
    } else {
        _cleanup_free_ char *cwd = getcwd (NULL, 0);
        if (! cwd)
            return mur_fail_errno (err, E_IO_003, "cannot name the current directory"), NULL;
        whole = x_asprintf ("%s/%s", cwd, path);
    }
    /* The nearest existing ancestor is resolved by the kernel; the rest is only text. */
    _cleanup_free_ char *head = x_strdup (whole);
    for (;;) {
        _cleanup_free_ char *resolved = realpath (*head ? head : "/", NULL);
        if (resolved)
            return append_lexically (resolved, whole + strlen (head));
        if (errno != ENOENT && errno != ENOTDIR && errno != EACCES && errno != ELOOP)
            return mur_fail_errno (err, E_IO_003, "cannot resolve %s", path), NULL;
        char *slash = strrchr (head, '/');
        if (! slash)
            return mur_fail_errno (err, E_IO_003, "cannot resolve %s", path), NULL;
        *slash = '\0';
    }
}

bool
fs_path_is_within (const char *path, const char *dir)
{
    size_t len = strlen (dir);
    if (len && dir[len - 1] == '/')
        len--;
    return strncmp (path, dir, len) == 0 && (path[len] == '/' || path[len] == '\0');
}
