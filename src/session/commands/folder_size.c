/* SPDX-License-Identifier: Apache-2.0 */
#include "session/commands/folder_size.h"

#include "base/buf.h"
#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEEPEST      256
#define FREE_ENTRIES 10000 /* beyond, each costs what a file system spends on one */
#define ENTRY_BYTES  4096
#define SLACK_BYTES  65536 /* a disk rounds up; more than this beyond the length was asked for */

struct measured {
    uint64_t bytes, entries;
    bool is_beyond; /* there is what cannot be looked at, and a command may have made it so */
};

/* A folder of ours that does not open was closed by a command; another's may be as it was found. */
static bool
is_hidden_by_us (const struct stat *st)
{
    return errno != ENOENT && st->st_uid == geteuid ();
}

/* What lies below an open directory, which is taken over. Links are not followed. */
static void
measure (int dir_fd, unsigned depth, struct measured *m)
{
    _cleanup_closedir_ DIR *dir = fdopendir (dir_fd);
    if (! dir) {
        close (dir_fd);
        return;
    }
    for (struct dirent *e; ! m->is_beyond && (e = readdir (dir));) {
        struct stat st;
        if (str_eq (e->d_name, ".") || str_eq (e->d_name, "..") ||
            fstatat (dir_fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        m->entries++;
        if (S_ISREG (st.st_mode)) {
            uint64_t held = (uint64_t)st.st_blocks * 512, length = (uint64_t)st.st_size;
            m->bytes += held > length + SLACK_BYTES ? held : length;
        }
        if (! S_ISDIR (st.st_mode))
            continue;
        int below = depth < DEEPEST ? openat (dir_fd, e->d_name,
                                              O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                                    : -1;
        if (below >= 0)
            measure (below, depth + 1, m);
        else
            m->is_beyond = depth >= DEEPEST || is_hidden_by_us (&st);
    }
}

uint64_t
folder_size (const char *path)
{
    struct measured m = { 0 };
    int fd = open (path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        measure (fd, 0, &m);
    if (m.is_beyond)
        return FOLDER_SIZE_BEYOND;
    return m.bytes + (m.entries > FREE_ENTRIES ? (m.entries - FREE_ENTRIES) * ENTRY_BYTES : 0);
}
