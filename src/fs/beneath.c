/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/beneath.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "fs/paths.h"
#include "fs/root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

/* A name too long for any file is the name of none. */
static bool
is_absence (int error)
{
    return error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG;
}

/* Why a component could not be opened; errno is the open's. */
static enum fs_beneath
reason (int dir, const char *name)
{
    int saved = errno;
    struct stat st;
    if ((saved == ELOOP || saved == ENOTDIR) &&
        fstatat (dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK (st.st_mode))
        return FS_BENEATH_LINK;
    return is_absence (saved) ? FS_BENEATH_ABSENT
           : saved == ENXIO   ? FS_BENEATH_SPECIAL
                              : FS_BENEATH_FAILED;
}

/* Component by component, following no link. */
static enum fs_beneath
walk (int base, const char *path, int flags, int *fd)
{
    _cleanup_close_ int dir = fcntl (base, F_DUPFD_CLOEXEC, 3);
    _cleanup_free_ char *text = x_strdup (path);
    char *rest = text;
    if (dir < 0)
        return FS_BENEATH_FAILED;
    for (char *part; (part = strsep (&rest, "/"));) {
        int how = rest ? O_RDONLY | O_DIRECTORY : flags | O_NONBLOCK | O_NOCTTY;
        int next = openat (dir, *part ? part : ".", how | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0)
            return reason (dir, part);
        close (dir);
        dir = next;
    }
    *fd = steal_fd (&dir);
    return FS_BENEATH_OPENED;
}

/* Where a descriptor leads to, as the kernel names it now. Owned; NULL when it cannot be told. */
static char *
path_of (int fd)
{
    char link[32], target[PATH_MAX];
    snprintf (link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink (link, target, sizeof target);
    return len > 0 && (size_t)len < sizeof target ? x_strndup (target, (size_t)len) : NULL;
}

/* <path> with its links resolved, relative to <base>: "" for base itself. */
static enum fs_beneath
resolve (int base, const char *path, char **resolved)
{
    _cleanup_close_ int place = openat (base, path, O_PATH | O_CLOEXEC);
    if (place < 0)
        return is_absence (errno) ? FS_BENEATH_ABSENT : FS_BENEATH_FAILED;
    _cleanup_free_ char *top = path_of (base), *target = path_of (place);
    if (! top || ! target)
        return FS_BENEATH_FAILED;
    if (! fs_path_is_within (target, top))
        return FS_BENEATH_OUTSIDE;
    const char *below = target + (str_eq (top, "/") ? 0 : strlen (top));
    *resolved = x_strdup (below + strspn (below, "/"));
    return FS_BENEATH_OPENED;
}

enum fs_beneath
fs_open_beneath (int base, const char *path, bool follows, int flags, int *fd, char **resolved)
{
    _cleanup_free_ char *plain = NULL;
    if (! follows)
        plain = x_strdup (path);
    else {
        enum fs_beneath how = resolve (base, path, &plain);
        if (how != FS_BENEATH_OPENED)
            return how;
    }
    enum fs_beneath how = walk (base, plain, flags, fd);
    if (how == FS_BENEATH_OPENED && resolved)
        *resolved = steal_ptr (&plain);
    return how;
}
