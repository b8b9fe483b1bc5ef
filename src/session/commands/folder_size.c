/* SPDX-License-Identifier: Apache-2.0 */
#include "session/commands/folder_size.h"

#include "base/buf.h"
#include "base/cleanup.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes of the regular files below an open directory, which is taken over. Links are not followed.
 */
static uint64_t
measure (int dir_fd, unsigned depth)
{
    uint64_t sum = 0;
    _cleanup_closedir_ DIR *dir = dir_fd < 0 ? NULL : fdopendir (dir_fd);
    if (! dir) {
        if (dir_fd >= 0)
            close (dir_fd);
        return 0;
    }
    for (struct dirent *e; (e = readdir (dir));) {
        struct stat st;
        if (str_eq (e->d_name, ".") || str_eq (e->d_name, "..") ||
            fstatat (dir_fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (S_ISREG (st.st_mode))
            sum += (uint64_t)st.st_size;
        else if (S_ISDIR (st.st_mode) && depth < 256)
            sum += measure (
                openat (dir_fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
                depth + 1);
    }
    return sum;
}

uint64_t
folder_size (const char *path)
{
    return measure (open (path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), 0);
}
