/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/replace.h"

#include "base/alloc.h"
#include "base/fdio.h"
#include "base/ids.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

char *
fs_temp_name (const char *name)
{
    char unique[37];
    uuid_text (unique);
    return x_asprintf (".%s.%s.tmp", name, unique);
}

bool
fs_ensure_mode (int fd, mode_t mode)
{
    struct stat st;
    return (fstat (fd, &st) == 0 && (st.st_mode & 07777) == mode) || fchmod (fd, mode) == 0;
}

bool
fs_write_new (int dir, const char *temp, const char *name, const void *data, size_t len,
              mode_t mode, bool is_exact, bool is_durable)
{
    _cleanup_close_ int fd =
        openat (dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return false;
    if ((is_exact && ! fs_ensure_mode (fd, mode)) || ! fd_write_all (fd, data, len) ||
        (is_durable && fsync (fd) < 0) || (temp != name && renameat (dir, temp, dir, name) < 0)) {
        int saved = errno;
        unlinkat (dir, temp, 0);
        errno = saved;
        return false;
    }
    return true;
}

bool
fs_write_and_rename (int dir, const char *name, const void *data, size_t len, mode_t mode,
                     bool is_exact, bool is_durable)
{
    _cleanup_free_ char *temp = fs_temp_name (name);
    return fs_write_new (dir, temp, name, data, len, mode, is_exact, is_durable);
}

bool
fs_replace_at (int dir_fd, const char *name, const void *data, size_t len, mode_t mode,
               bool durable, struct mur_error **err)
{
    if (! fs_write_and_rename (dir_fd, name, data, len, mode, true, durable))
        return mur_fail_errno (err, E_IO_003, "cannot write %s", name);
    return true;
}
