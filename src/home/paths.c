/* SPDX-License-Identifier: Apache-2.0
 *
 * Levels are opened one below the other with O_NOFOLLOW; a level is created only when opening it
 * failed, so a warm launch costs one open a level. The home directory itself may be reached through
 * links: it is the user's.
 */
#include "home/paths.h"

#include "base/alloc.h"
#include "fs/paths.h"
#include "fs/root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define HOME_HINT                                                                                   \
    "murmur keeps its records there: make it a directory you may write in, or set HOME to another " \
    "place"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* The user's home directory. Borrowed from the environment. */
static const char *
user_home (struct mur_error **err)
{
    const char *name = "HOME";
    const char *value = getenv (name);
    if (! value) {
        const char *other = getenv ("USERPROFILE");
        if (other) {
            name = "USERPROFILE";
            value = other;
        }
    }
    if (! value)
        mur_fail (err, E_IO_004, "HOME is not set, so there is no place for ~/.murmur");
    else if (! *value)
        mur_fail (err, E_IO_004, "%s is empty, so there is no place for ~/.murmur", name);
    else if (*value != '/')
        mur_fail (err, E_IO_004, "%s is \"%s\", which is not an absolute path", name, value);
    else
        return value;
    mur_hint (err, "set HOME to the absolute path of a directory you may write in");
    return NULL;
}

char *
home_path (struct mur_error **err)
{
    const char *home = user_home (err);
    if (! home)
        return NULL;
    size_t len = strlen (home);
    while (len > 1 && home[len - 1] == '/')
        len--;
    return x_asprintf ("%.*s/.murmur", len == 1 ? 0 : (int)len, home);
}

char *
home_path_below (const char *below, struct mur_error **err)
{
    char *top = home_path (err);
    if (! top || ! *below)
        return top;
    char *path = x_asprintf ("%s/%s", top, below);
    free (top);
    return path;
}

/* --- the check of a launch --- */

static bool
unusable (const char *path, const char *why, struct mur_error **err)
{
    mur_fail (err, E_IO_004, "%s %s", path, why);
    return mur_hint (err, HOME_HINT);
}

/* True when entries may be created in <path>; *is_absent when nothing is there. */
static bool
may_create_in (const char *path, bool *is_absent, struct mur_error **err)
{
    struct stat st;
    *is_absent = false;
    if (stat (path, &st) < 0) {
        struct stat link;
        if (errno == ENOENT && lstat (path, &link) < 0) {
            *is_absent = true;
            return true;
        }
        _cleanup_free_ char *why = x_asprintf ("cannot be used: %s", strerror (errno));
        return unusable (path, why, err);
    }
    if (! S_ISDIR (st.st_mode))
        return unusable (path, "is not a directory", err);
    /* Root passes access(2) on any mode; a directory its owner closed stays closed for root too. */
    bool is_closed = st.st_uid == geteuid () && (st.st_mode & 0300) != 0300;
    if (is_closed || access (path, W_OK | X_OK) < 0)
        return unusable (path, "does not let entries be created in it", err);
    return true;
}

/* Climbs from an absent ~/.murmur to the nearest thing that exists. */
static bool
check_ancestor (const char *path, struct mur_error **err)
{
    _cleanup_free_ char *text = x_strdup (path);
    bool is_absent = true;
    while (is_absent) {
        char *slash = strrchr (text, '/');
        slash[slash == text ? 1 : 0] = '\0';
        if (! may_create_in (text, &is_absent, err))
            return false;
        if (is_absent && str_eq (text, "/"))
            return unusable (path, "cannot be created", err);
    }
    return true;
}

bool
home_check_for_launch (struct mur_error **err)
{
    _cleanup_free_ char *top = home_path (err);
    bool is_absent;
    if (! top || ! may_create_in (top, &is_absent, err))
        return false;
    if (is_absent)
        return check_ancestor (top, err);
    static const char *const parts[] = { "sessions", "records" };
    for (size_t i = 0; i < ARRAY_LEN (parts); i++) {
        _cleanup_free_ char *path = x_asprintf ("%s/%s", top, parts[i]);
        if (! may_create_in (path, &is_absent, err))
            return false;
    }
    return true;
}

/* --- levels --- */

/* Says why a component could not be opened: a link is named as one. Always -1. */
static int
fail_level (int parent, const char *path, const char *name, struct mur_error **err)
{
    int saved = errno;
    struct stat st;
    bool is_there = fstatat (parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (is_there && S_ISLNK (st.st_mode))
        mur_fail (err, E_IO_003, "%s: the component %s is a symbolic link", path, name);
    else if (is_there && ! S_ISDIR (st.st_mode))
        mur_fail (err, E_IO_003, "%s: the component %s is not a directory", path, name);
    else {
        errno = saved;
        mur_fail_errno (err, E_IO_003, "%s: cannot open the component %s", path, name);
    }
    return -1;
}

/* Takes group and other bits away; never adds owner bits. */
static void
narrow (int fd)
{
    struct stat st;
    if (fstat (fd, &st) == 0 && (st.st_mode & 077))
        (void)fchmod (fd, st.st_mode & 0700);
}

/* Opens one level, creating it 0700 when <create>. -1 with *err unset when it is absent and may not
 * be created. */
static int
open_level (int parent, const char *path, const char *name, bool create, struct mur_error **err)
{
    int fd = openat (parent, name, DIR_FLAGS);
    if (fd >= 0)
        return fd;
    if (errno != ENOENT)
        return fail_level (parent, path, name, err);
    if (! create)
        return -1;
    bool is_ours = mkdirat (parent, name, 0700) == 0;
    if (! is_ours && errno != EEXIST)
        return fail_level (parent, path, name, err);
    fd = openat (parent, name, DIR_FLAGS);
    if (fd < 0 && is_ours && errno == EACCES && fchmodat (parent, name, 0700, 0) == 0)
        fd = openat (parent, name, DIR_FLAGS); /* the umask had taken owner bits */
    if (fd < 0)
        return fail_level (parent, path, name, err);
    if (is_ours)
        (void)fchmod (fd, 0700);
    return fd;
}

/* Opens ~/.murmur itself. */
static int
open_top (const char *top, bool create, struct mur_error **err)
{
    int fd = open (top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT && create) {
        /* The home directory may be missing too; its own levels get ordinary modes. */
        for (char *at = strchr (top + 1, '/'); at; at = strchr (at + 1, '/')) {
            _cleanup_free_ char *level = x_strndup (top, (size_t)(at - top));
            (void)mkdir (level, 0755);
        }
        bool is_ours = mkdir (top, 0700) == 0;
        int why = errno;
        if (is_ours && chmod (top, 0700) < 0)
            return mur_fail_errno (err, E_IO_004, "cannot use %s", top), -1;
        fd = open (top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT && ! is_ours)
            errno = why; /* why it cannot be made, not that it is not there */
    }
    if (fd < 0 && errno == ENOENT && ! create)
        return -1;
    if (fd >= 0)
        return fd;
    mur_fail_errno (err, E_IO_004, "cannot use %s", top);
    return mur_hint (err, HOME_HINT), -1;
}

/* Walks the levels of a plain relative path below <fd>, which is consumed. <narrows>: pre-existing
 * levels lose group and other bits. */
static int
walk (int fd, const char *path, const char *below, bool create, bool narrows,
      struct mur_error **err)
{
    _cleanup_close_ int dir = fd;
    _cleanup_free_ char *text = x_strdup (below);
    char *rest = text;
    for (char *part; (part = strsep (&rest, "/"));) {
        if (! *part)
            continue;
        if (str_eq (part, ".") || str_eq (part, ".."))
            return mur_fail (err, E_IO_003, "%s: the component %s is not a plain name", path, part),
                   -1;
        int next = open_level (dir, path, part, create, err);
        if (next < 0)
            return -1;
        if (narrows)
            narrow (next);
        close (dir);
        dir = next;
    }
    return steal_fd (&dir);
}

int
home_open_dir (const char *below, struct mur_error **err)
{
    _cleanup_free_ char *top = home_path (err);
    if (! top)
        return -1;
    int fd = open_top (top, true, err);
    if (fd < 0)
        return -1;
    narrow (fd);
    _cleanup_free_ char *path = x_asprintf ("%s/%s", top, below);
    return walk (fd, path, below, true, true, err);
}

int
home_find_dir (const char *below, struct mur_error **err)
{
    _cleanup_free_ char *top = home_path (err);
    if (! top)
        return -1;
    int fd = open_top (top, false, err);
    if (fd < 0)
        return -1;
    _cleanup_free_ char *path = x_asprintf ("%s/%s", top, below);
    return walk (fd, path, below, false, false, err);
}

/* --- records groups --- */

char *
home_work_root (const char *workdir, const char *manifest_dir, struct mur_error **err)
{
    if (workdir)
        return fs_canonical_path (workdir, err);
    _cleanup_free_ char *path = x_asprintf ("%s/workdir", manifest_dir);
    return fs_canonical_path (path, err);
}

char *
home_records_group (const char *work_root, struct mur_error **err)
{
    _cleanup_free_ char *below = x_asprintf ("records%s", str_eq (work_root, "/") ? "" : work_root);
    return home_path_below (below, err);
}

/* The whole walk in one call when the kernel can: no link anywhere on the way. -1 when anything is
 * in the way. */
static int
open_without_links (int dir, const char *below)
{
    struct open_how how = {
        .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    return (int)syscall (SYS_openat2, dir, below, &how, sizeof (how));
}

/* Opens the group of a work root below an open records/ (borrowed). */
static int
open_group (int records_fd, const char *group, const char *work_root, bool create,
            struct mur_error **err)
{
    const char *below = work_root + strspn (work_root, "/");
    int fd = *below ? open_without_links (records_fd, below) : -1;
    if (fd >= 0)
        return fd;
    int copy = fcntl (records_fd, F_DUPFD_CLOEXEC, 3);
    if (copy < 0)
        return mur_fail_errno (err, E_IO_003, "cannot open %s", group), -1;
    return walk (copy, group, below, create, false, err);
}

int
home_find_records_group (const char *work_root, struct mur_error **err)
{
    _cleanup_free_ char *group = home_records_group (work_root, err);
    if (! group)
        return -1;
    _cleanup_close_ int records = home_find_dir ("records", err);
    return records < 0 ? -1 : open_group (records, group, work_root, false, err);
}

int
home_open_records_group (const char *work_root, struct mur_error **err)
{
    _cleanup_free_ char *group = home_records_group (work_root, err);
    if (! group)
        return -1;
    _cleanup_close_ int records = home_open_dir ("records", err);
    return records < 0 ? -1 : open_group (records, group, work_root, true, err);
}

static int
newest_first (const void *a, const void *b)
{
    return strcmp (*(char *const *)b, *(char *const *)a);
}

/* True for a real directory (no link) whatever d_type the file system reports. */
static bool
is_directory (int dir_fd, const struct dirent *entry)
{
    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_DIR;
    struct stat st;
    return fstatat (dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR (st.st_mode);
}

bool
home_list_sessions (int group_fd, const char *group_path, struct strv *names,
                    struct mur_error **err)
{
    int copy = openat (group_fd, ".", DIR_FLAGS);
    _cleanup_closedir_ DIR *dir = copy < 0 ? NULL : fdopendir (copy);
    if (! dir) {
        mur_fail_errno (err, E_IO_003, "cannot list %s", group_path);
        if (copy >= 0)
            close (copy);
        return false;
    }
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir (dir);
        if (! entry)
            break;
        if (str_starts (entry->d_name, "ses_") && is_directory (group_fd, entry))
            strv_push (names, entry->d_name);
    }
    if (errno)
        return mur_fail_errno (err, E_IO_003, "cannot list %s", group_path);
    if (names->len)
        qsort (names->items, names->len, sizeof (*names->items), newest_first);
    return true;
}
