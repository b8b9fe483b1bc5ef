/* SPDX-License-Identifier: Apache-2.0 */
#include "home/session_dirs.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "fs/paths.h"
#include "fs/replace.h"
#include "fs/root.h"
#include "fs/temporaries.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define STALE_AFTER_MS 60000
#define DIR_FLAGS      (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static bool
is_older_than_a_minute (const struct stat *st, uint64_t now_ms)
{
    uint64_t then_ms =
        (uint64_t)st->st_mtim.tv_sec * 1000 + (uint64_t)st->st_mtim.tv_nsec / 1000000;
    return now_ms > then_ms && now_ms - then_ms > STALE_AFTER_MS;
}

/* True when the entry's owner is gone. *lock_fd receives the lock, taken, when there is one: it is
 * held from before it has its name, so who can take it has outlived its owner. */
static bool
is_stale (int sessions_fd, const char *name, uint64_t now_ms, int *lock_fd)
{
    struct stat st;
    _cleanup_free_ char *lock_name = x_asprintf ("%s/.lock", name);
    int fd = openat (sessions_fd, lock_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT && fstatat (sessions_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
               is_older_than_a_minute (&st, now_ms);
    *lock_fd = fd;
    return flock (fd, LOCK_EX | LOCK_NB) == 0;
}

/* Removes what dead sessions left. Failures are silent: a later launch tries again. */
static void
sweep (int sessions_fd)
{
    int copy = openat (sessions_fd, ".", DIR_FLAGS);
    _cleanup_closedir_ DIR *dir = copy < 0 ? NULL : fdopendir (copy);
    if (! dir) {
        if (copy >= 0)
            close (copy);
        return;
    }
    uint64_t now_ms = clock_unix_ms ();
    const struct dirent *entry;
    while ((entry = readdir (dir))) {
        if (str_eq (entry->d_name, ".") || str_eq (entry->d_name, ".."))
            continue;
        _cleanup_close_ int lock_fd = -1;
        if (is_stale (sessions_fd, entry->d_name, now_ms, &lock_fd))
            (void)fs_remove_tree_at (sessions_fd, entry->d_name, NULL);
    }
}

#define HOME_DEPTH    8
#define SWEEP_SECONDS 3600

/* Once an hour: a home may hold many records. The hour is an attribute of the folder, so that a
 * command that only looks adds no file; where there are none it is each time. What commands wrote
 * is left alone. */
static void
sweep_temporaries (int home_fd)
{
    static const char *const others[] = {
        "home", "tmp", "blobs", "sessions", "harness-home", NULL
    };
    int64_t swept = 0, now = (int64_t)time (NULL);
    if (fgetxattr (home_fd, HOME_SWEPT_ATTRIBUTE, &swept, sizeof swept) == (ssize_t)sizeof swept &&
        now - swept < SWEEP_SECONDS && swept <= now)
        return;
    (void)fsetxattr (home_fd, HOME_SWEPT_ATTRIBUTE, &now, sizeof now, 0);
    fs_temporaries_sweep (home_fd, HOME_DEPTH, others);
}

void
home_sweep (void)
{
    _cleanup_close_ int home_fd = home_find_dir ("", NULL);
    _cleanup_close_ int sessions = home_fd < 0 ? -1 : openat (home_fd, "sessions", DIR_FLAGS);
    if (sessions >= 0)
        sweep (sessions);
    if (home_fd >= 0)
        sweep_temporaries (home_fd);
}

/* Makes <name> below <dir> with exactly 0700; it must be new. Returns an owned descriptor or -1. */
static int
make_dir (int dir, const char *parent_path, const char *name, struct mur_error **err)
{
    if (mkdirat (dir, name, 0700) < 0)
        return mur_fail_errno (err, E_IO_003, "cannot create %s/%s", parent_path, name), -1;
    int fd = openat (dir, name, DIR_FLAGS);
    if (fd < 0 && errno == EACCES && fchmodat (dir, name, 0700, 0) == 0)
        fd = openat (dir, name, DIR_FLAGS);
    if (fd < 0)
        return mur_fail_errno (err, E_IO_003, "cannot open %s/%s", parent_path, name), -1;
    (void)fs_ensure_mode (fd, 0700);
    return fd;
}

/* The same, without keeping it open. */
static bool
make_dirs (int dir, const char *parent_path, const char *const *names, size_t count,
           struct mur_error **err)
{
    for (size_t i = 0; i < count; i++) {
        int fd = make_dir (dir, parent_path, names[i], err);
        if (fd < 0)
            return false;
        close (fd);
    }
    return true;
}

static bool
create_session_dir (struct home_session *s, const char *id, struct mur_error **err)
{
    _cleanup_close_ int sessions = home_open_dir ("sessions", err);
    _cleanup_free_ char *sessions_path = sessions < 0 ? NULL : home_path_below ("sessions", err);
    if (! sessions_path)
        return false;
    sweep (sessions);
    s->session_fd = make_dir (sessions, sessions_path, id, err);
    if (s->session_fd < 0)
        return false;
    s->session_path = x_asprintf ("%s/%s", sessions_path, id);
    s->runtime_path = x_asprintf ("%s/runtime", s->session_path);
    static const char lock[] = ".lock.new";
    s->lock_fd = openat (s->session_fd, lock, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (s->lock_fd < 0 || ! fs_ensure_mode (s->lock_fd, 0600) ||
        flock (s->lock_fd, LOCK_EX | LOCK_NB) < 0 ||
        renameat (s->session_fd, lock, s->session_fd, ".lock") < 0)
        return mur_fail_errno (err, E_IO_003, "cannot lock %s/.lock", s->session_path);
    s->runtime_fd = make_dir (s->session_fd, s->session_path, "runtime", err);
    static const char *const others[] = { "sealed-etc", "harness" };
    return s->runtime_fd >= 0 &&
           make_dirs (s->session_fd, s->session_path, others, ARRAY_LEN (others), err);
}

/* The group must be what its path names: a directory swapped for a link while we walked is caught
 * here. */
static bool
group_is_its_path (int group_fd, const char *group, struct mur_error **err)
{
    _cleanup_close_ int again = open (group, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat walked, named;
    if (again < 0 || fstat (group_fd, &walked) < 0 || fstat (again, &named) < 0)
        return mur_fail_errno (err, E_IO_003, "cannot reopen %s", group);
    if (walked.st_dev != named.st_dev || walked.st_ino != named.st_ino)
        return mur_fail (err, E_IO_003,
                         "%s names another directory than the one just opened without links",
                         group);
    return true;
}

static bool
create_records_dir (struct home_session *s, const char *id, const char *work_root,
                    struct mur_error **err)
{
    s->records_group = home_records_group (work_root, err);
    if (! s->records_group)
        return false;
    _cleanup_close_ int group = home_open_records_group (work_root, err);
    if (group < 0)
        return false;
    s->records_fd = make_dir (group, s->records_group, id, err);
    if (s->records_fd < 0)
        return false;
    s->records_path = x_asprintf ("%s/%s", s->records_group, id);
    if (! group_is_its_path (s->records_fd, s->records_path, err))
        return false;
    static const char *const inside[] = { "tmp", "home" };
    return make_dirs (s->records_fd, s->records_path, inside, ARRAY_LEN (inside), err);
}

bool
home_session_create (struct home_session *s, const char *session_id, const char *work_root,
                     struct mur_error **err)
{
    *s = (struct home_session){
        .lock_fd = -1, .session_fd = -1, .runtime_fd = -1, .records_fd = -1
    };
    if (create_session_dir (s, session_id, err) &&
        create_records_dir (s, session_id, work_root, err))
        return true;
    home_session_end (s);
    return false;
}

static void
close_all (struct home_session *s)
{
    int *fds[] = { &s->lock_fd, &s->session_fd, &s->runtime_fd, &s->records_fd };
    for (size_t i = 0; i < ARRAY_LEN (fds); i++) {
        if (*fds[i] >= 0)
            close (*fds[i]);
        *fds[i] = -1;
    }
}

void
home_session_free (struct home_session *s)
{
    close_all (s);
    free (s->session_path);
    free (s->runtime_path);
    free (s->records_group);
    free (s->records_path);
    *s = (struct home_session){
        .lock_fd = -1, .session_fd = -1, .runtime_fd = -1, .records_fd = -1
    };
}

void
home_session_end (struct home_session *s)
{
    if (s->session_path) {
        const char *id = strrchr (s->session_path, '/') + 1;
        _cleanup_close_ int sessions = home_find_dir ("sessions", NULL);
        if (sessions >= 0)
            (void)fs_remove_tree_at (sessions, id, NULL);
    }
    home_session_free (s);
}
