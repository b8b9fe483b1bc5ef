/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/kernel/cgroup_sweep.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "sandbox/kernel/cgroup_places.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_MAX       (1u << 20)
#define DIR_FLAGS      (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define DEPTH_MAX      4
#define REMOVE_TRIES   40
#define REMOVE_WAIT_US 5000

/* True for "murmur-<session>-<pid>-<n>_<pid namespace>" of a process that is gone. Of a process in
 * another namespace nothing is known: its number is another's here, or nobody's. */
static bool
is_orphan (const char *name)
{
    const char *counter = strrchr (name, '-'), *space = strrchr (name, '_');
    if (! str_starts (name, "murmur-ses_") || ! counter || space < counter)
        return false;
    const char *pid = counter;
    while (pid > name && pid[-1] != '-')
        pid--;
    char *end, *space_end;
    long number = strtol (pid, &end, 10);
    unsigned long inode = strtoul (space + 1, &space_end, 10);
    return end == counter && ! *space_end && inode == cgroup_pid_space () && number > 1 &&
           kill ((pid_t)number, 0) < 0 && errno == ESRCH;
}

/* A group is held by the runtime that made it and by that one's watcher, in whatever namespace they
 * are: the number in a name proves nothing alone. Holds it against its maker meanwhile.
 * Returns a descriptor the caller owns, or -1: it is held. */
static int
take_abandoned (int base, const char *name)
{
    _cleanup_close_ int fd = openat (base, name, DIR_FLAGS);
    if (fd < 0 || (flock (fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK))
        return -1;
    return steal_fd (&fd);
}

static void
end_processes (int dir)
{
    char text[4096];
    _cleanup_close_ int fd = openat (dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read (fd, text, sizeof (text) - 1);
    text[len > 0 ? len : 0] = '\0';
    for (char *at = text; *at;) {
        long pid = strtol (at, &at, 10);
        if (pid > 1)
            kill ((pid_t)pid, SIGKILL);
        at += strcspn (at, "\n");
        at += *at == '\n';
    }
}

/* From the leaves up: a control group is removed with rmdir alone, its files are the kernel's. */
static void
remove_group (int parent, const char *name, unsigned depth)
{
    int fd = openat (parent, name, DIR_FLAGS);
    _cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir (fd);
    if (! dir) {
        if (fd >= 0)
            close (fd);
        return;
    }
    end_processes (fd);
    const struct dirent *e;
    while (depth < DEPTH_MAX && (e = readdir (dir)))
        if (e->d_type == DT_DIR && e->d_name[0] != '.')
            remove_group (fd, e->d_name, depth + 1);
    /* What was ended a moment ago still stands in it. */
    for (int i = 0; i < REMOVE_TRIES; i++) {
        if (unlinkat (parent, name, AT_REMOVEDIR) == 0 || errno != EBUSY)
            return;
        usleep (REMOVE_WAIT_US);
    }
}

void
cgroup_sweep_folder (const char *base)
{
    _cleanup_closedir_ DIR *dir = opendir (base);
    const struct dirent *e;
    struct stat st;
    while (dir && (e = readdir (dir)))
        if (is_orphan (e->d_name) &&
            fstatat (dirfd (dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            st.st_uid == geteuid ()) {
            _cleanup_close_ int held = take_abandoned (dirfd (dir), e->d_name);
            if (held >= 0)
                remove_group (dirfd (dir), e->d_name, 0);
        }
}

void
cgroup_sweep (void)
{
    _cleanup_buf_ struct buf mountinfo = { 0 }, own = { 0 };
    struct cgroup_places places;
    if (! fs_read_path ("/proc/self/mountinfo", TEXT_MAX, &mountinfo, NULL) ||
        ! fs_read_path ("/proc/self/cgroup", TEXT_MAX, &own, NULL))
        return;
    cgroup_places_parse (mountinfo.data, own.data, &places);
    for (int h = 0; h < H_COUNT; h++) {
        const struct cgroup_place *p = &places.at[h];
        if (! p->mount)
            continue;
        /* As groups are made: below the process's own, or else directly below the mount. */
        cgroup_sweep_folder (p->mount);
        bool is_seen = p->own && p->own[0] && ! str_eq (p->own, "/") && ! strstr (p->own, "/..");
        _cleanup_free_ char *base = is_seen ? x_asprintf ("%s%s", p->mount, p->own) : NULL;
        if (base)
            cgroup_sweep_folder (base);
    }
    cgroup_places_free (&places);
}
