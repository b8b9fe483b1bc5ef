/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/temporaries.h"

#include "base/alloc.h"
#include "base/fdio.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define STALE_SECONDS 60
#define UUID_LEN      36

/* ".NAME.<uuid>.tmp" */
static bool
is_temporary (const char *name)
{
    static const char ending[] = ".tmp";
    size_t len = strlen (name), tail = UUID_LEN + sizeof ending - 1;
    if (name[0] != '.' || len < tail + 3 || strcmp (name + len - sizeof ending + 1, ending) != 0)
        return false;
    const char *uuid = name + len - tail;
    return uuid[-1] == '.' && strspn (uuid, "0123456789abcdef-") == UUID_LEN;
}

static bool
is_skipped (const char *name, const char *const *skipped)
{
    if (strcmp (name, ".") == 0 || strcmp (name, "..") == 0)
        return true;
    for (size_t i = 0; skipped && skipped[i]; i++)
        if (strcmp (name, skipped[i]) == 0)
            return true;
    return false;
}

void
fs_temporaries_sweep (int dir_fd, unsigned depth, const char *const *skipped)
{
    int fd = openat (dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir (fd);
    if (! dir && fd >= 0)
        close (fd);
    time_t now = time (NULL);
    for (struct dirent *e; dir && (e = readdir (dir));) {
        struct stat st;
        if (is_temporary (e->d_name)) {
            if (fstatat (fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG (st.st_mode) &&
                now - st.st_mtime >= STALE_SECONDS)
                unlinkat (fd, e->d_name, 0);
        } else if (depth && (e->d_type == DT_DIR || e->d_type == DT_UNKNOWN) &&
                   ! is_skipped (e->d_name, skipped)) {
            _cleanup_close_ int below =
                openat (fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (below >= 0)
                fs_temporaries_sweep (below, depth - 1, skipped);
        }
    }
}
