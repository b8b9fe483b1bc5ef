/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/kernel/mount_plan.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "sandbox/kernel/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef MS_REC /* <linux/mount.h> and <sys/mount.h> disagree on who defines these */
#define MS_REC 16384
#endif

/* --- making a plan (parent) --- */

struct draft {
    struct arena *arena;
    struct mount_entry *entries;
    size_t len, cap;
    struct mount_link *links;
    size_t link_len, link_cap;
};

/* The first entry of a target wins. */
static void
add (struct draft *d, struct mount_entry e)
{
    struct stat st = { 0 };
    for (size_t i = 0; i < d->len; i++)
        if (str_eq (d->entries[i].target, e.target))
            return;
    if (stat (e.source, &st) < 0 && ! e.is_required)
        return;
    e.is_file = ! S_ISDIR (st.st_mode);
    e.source = arena_strdup (d->arena, e.source);
    e.target = arena_strdup (d->arena, e.target);
    x_grow (d->entries, d->len, d->cap);
    d->entries[d->len++] = e;
}

static void
add_tree (struct draft *d, const char *path, bool is_required)
{
    add (d, (struct mount_entry){
                .source = path, .target = path, .is_read_only = true, .is_required = is_required });
}

static void
add_folder (struct draft *d, const struct mount_folder *f, const char *target, bool is_read_only)
{
    add (d, (struct mount_entry){ .source = f->path,
                                  .target = target,
                                  .is_read_only = is_read_only,
                                  .is_required = true,
                                  .is_verified = true,
                                  .dev = f->dev,
                                  .ino = f->ino });
}

/* The entries below the last one's target would be covered by it: they come after. */
static void
move_behind_last (struct draft *d)
{
    size_t kept = 0, moved = 0, last = d->len - 1;
    struct mount_entry *below = x_new_array (struct mount_entry, d->len);
    for (size_t i = 0; i < last; i++)
        if (fs_path_is_within (d->entries[i].target, d->entries[last].target))
            below[moved++] = d->entries[i];
        else
            d->entries[kept++] = d->entries[i];
    d->entries[kept++] = d->entries[last];
    if (moved)
        memcpy (d->entries + kept, below, moved * sizeof *below);
    free (below);
}

static void
add_link (struct draft *d, const char *target, const char *path)
{
    x_grow (d->links, d->link_len, d->link_cap);
    d->links[d->link_len++] = (struct mount_link){ .target = arena_strdup (d->arena, target),
                                                   .path = arena_strdup (d->arena, path) };
}

/* Moves the draft's arrays into the arena. */
static void
finish (struct mount_plan *plan, struct draft *d, const char *work_dir)
{
    plan->entry_count = d->len;
    plan->entries = arena_new_array (d->arena, struct mount_entry, d->len + 1);
    if (d->len)
        memcpy (plan->entries, d->entries, d->len * sizeof *d->entries);
    plan->link_count = d->link_len;
    plan->links = arena_new_array (d->arena, struct mount_link, d->link_len + 1);
    if (d->link_len)
        memcpy (plan->links, d->links, d->link_len * sizeof *d->links);
    free (d->entries);
    free (d->links);
    const char *base = plan->base ? plan->base : "";
    for (size_t i = 0; i < plan->entry_count; i++)
        plan->entries[i].staged_target =
            arena_printf (d->arena, "%s%s", base, plan->entries[i].target);
    for (size_t i = 0; i < plan->link_count; i++)
        plan->links[i].staged_path = arena_printf (d->arena, "%s%s", base, plan->links[i].path);
    plan->staged_dev = arena_printf (d->arena, "%s/dev", base);
    plan->staged_proc = arena_printf (d->arena, "%s/proc", base);
    plan->tree_fds = arena_new_array (d->arena, int, plan->entry_count + 1);
    plan->work_dir = arena_strdup (d->arena, work_dir);
    plan->uid = geteuid ();
    plan->gid = getegid ();
}

/* A replay's: what shows the records read-only would cover it, and comes first. */
static bool
is_among_records (const struct mount_folders *f)
{
    return f->records.path && fs_path_is_within (f->work.path, f->records.path);
}

/* Given a place of its own where what lies over it so far shows it otherwise: the covered /tmp not
 * at all, a writable tree as writable, a read-only one as read-only. */
static void
expose (struct draft *d, const struct mount_folder *f, bool is_read_only, const char *work_dir)
{
    const struct mount_entry *over = NULL;
    for (size_t i = 0; i < d->len; i++)
        if (fs_path_is_within (f->path, d->entries[i].target))
            over = &d->entries[i];
    if (! over && ! (is_read_only && fs_path_is_within (f->path, work_dir)))
        return;
    if (over && over != d->entries && over->is_read_only == is_read_only)
        return;
    add_folder (d, f, f->path, is_read_only);
}

static bool
is_folder (const char *path)
{
    struct stat st;
    return stat (path, &st) == 0 && S_ISDIR (st.st_mode);
}

/* Over the host's own below sealed, and only where the host has one: nothing is made there. */
static void
add_synthetic (struct draft *d, const struct mount_folders *f, bool is_over_host)
{
    for (size_t i = 0; f->sealed_etc && mount_synthetic_etc[i]; i++) {
        const char *name = mount_synthetic_etc[i];
        const char *target = arena_printf (d->arena, "/etc/%s", name);
        struct stat st;
        if (is_over_host && (lstat (target, &st) < 0 || ! S_ISREG (st.st_mode)))
            continue;
        bool is_identity = str_eq (name, "passwd") || str_eq (name, "group");
        add (d,
             (struct mount_entry){ .source = arena_printf (d->arena, "%s/%s", f->sealed_etc, name),
                                   .target = target,
                                   .is_read_only = true,
                                   .is_required = is_identity && ! is_over_host });
    }
}

/* Read only under every name that leads there, and no link out of it: it is a mount of its own. */
static void
add_protected (struct draft *d, const struct mount_folders *f)
{
    for (size_t i = 0; f->protected && f->protected[i]; i++) {
        char resolved[PATH_MAX];
        if (realpath (f->protected[i], resolved) && ! str_eq (resolved, f->work.path) &&
            fs_path_is_within (resolved, f->work.path))
            add_tree (d, resolved, false);
    }
}

void
mount_plan_none (struct mount_plan *plan, const struct mount_folders *f, struct arena *a)
{
    *plan = (struct mount_plan){ .kind = MOUNT_NOTHING };
    struct draft d = { .arena = a };
    finish (plan, &d, f->work.path);
}

void
mount_plan_tmp (struct mount_plan *plan, const struct mount_folders *f, struct arena *a)
{
    *plan = (struct mount_plan){ .kind = MOUNT_NOTHING };
    struct draft d = { .arena = a };
    if (! str_eq (f->work.path, "/tmp")) {
        plan->kind = MOUNT_TMP;
        plan->covered = f->covered;
        add_folder (&d, &f->temp, "/tmp", false);
        const char *work_dir = f->work.path;
        if (is_among_records (f))
            expose (&d, &f->records, true, work_dir);
        expose (&d, &f->work, false, work_dir);
        expose (&d, &f->runtime, true, work_dir);
        expose (&d, &f->records, true, work_dir);
        expose (&d, &f->home, false, work_dir);
        expose (&d, &f->temp, false, work_dir);
        for (size_t i = 0; f->read_only && f->read_only[i]; i++)
            if (fs_path_is_within (f->read_only[i], "/tmp"))
                add_tree (&d, f->read_only[i], false);
        for (size_t i = 0; f->staged_trees && f->staged_trees[i]; i++)
            if (fs_path_is_within (f->staged_trees[i], "/tmp"))
                add_tree (&d, f->staged_trees[i], true);
        for (size_t i = 0; f->guarded && f->guarded[i]; i++)
            add_tree (&d, f->guarded[i], false);
        add_protected (&d, f);
        add_synthetic (&d, f, true);
        for (size_t i = 0; f->links && f->links[i]; i += 2)
            if (fs_path_is_within (f->links[i], "/tmp"))
                add_link (&d, f->links[i + 1], f->links[i]);
        plan->has_shm = is_folder ("/dev/shm");
        plan->has_pts = is_folder ("/dev/pts");
    }
    finish (plan, &d, f->work.path);
}

const char *const mount_system_trees[] = { "/usr",   "/bin",   "/sbin",   "/lib",
                                           "/lib32", "/lib64", "/libx32", NULL };

const char *const mount_etc_entries[] = { "/etc/ld.so.cache",
                                          "/etc/ld.so.conf",
                                          "/etc/ca-certificates.conf",
                                          "/etc/resolv.conf",
                                          "/etc/localtime",
                                          "/etc/timezone",
                                          "/etc/ld.so.conf.d",
                                          "/etc/alternatives",
                                          "/etc/ssl",
                                          "/etc/pki",
                                          "/etc/ca-certificates",
                                          "/etc/terminfo",
                                          NULL };

const char *const mount_synthetic_etc[] = { "passwd",        "group",     "hosts",
                                            "nsswitch.conf", "gitconfig", NULL };

const char *const mount_public_proc[] = { "/proc/cpuinfo",
                                          "/proc/meminfo",
                                          "/proc/stat",
                                          "/proc/uptime",
                                          "/proc/loadavg",
                                          "/proc/version",
                                          "/proc/filesystems",
                                          "/proc/sys/kernel/osrelease",
                                          "/proc/sys/kernel/ostype",
                                          "/proc/sys/kernel/version",
                                          "/proc/sys/kernel/ngroups_max",
                                          "/proc/sys/kernel/cap_last_cap",
                                          "/proc/sys/kernel/pid_max",
                                          "/proc/sys/kernel/threads-max",
                                          "/proc/sys/kernel/random/uuid",
                                          "/proc/sys/vm/overcommit_memory",
                                          "/proc/sys/vm/max_map_count",
                                          "/proc/sys/fs/inotify/max_user_watches",
                                          "/proc/sys/net/core/somaxconn",
                                          NULL };

static const char *const bases[] = { "/tmp", "/run", "/var/tmp", "/mnt", "/media" };

static const char *
choose_base (const char *work_dir)
{
    struct stat st;
    for (size_t i = 0; i < ARRAY_LEN (bases); i++)
        if (! fs_path_is_within (work_dir, bases[i]) && stat (bases[i], &st) == 0 &&
            S_ISDIR (st.st_mode))
            return bases[i];
    return NULL;
}

/* A symbolic link on the host stays one; anything else is bound. */
static void
add_system_tree (struct draft *d, const char *path)
{
    char target[PATH_MAX];
    ssize_t len = readlink (path, target, sizeof target - 1);
    if (len > 0) {
        target[len] = '\0';
        add_link (d, target, path);
    } else {
        add_tree (d, path, false);
    }
}

static bool
is_shown (const struct draft *d, const char *path)
{
    for (size_t i = 0; i < d->len; i++)
        if (fs_path_is_within (path, d->entries[i].target))
            return true;
    for (size_t i = 0; i < d->link_len; i++)
        if (fs_path_is_within (path, d->links[i].path))
            return true;
    return false;
}

bool
mount_plan_sealed (struct mount_plan *plan, const struct mount_folders *f, struct arena *a,
                   struct mur_error **err)
{
    *plan = (struct mount_plan){ .kind = MOUNT_SEALED, .base = choose_base (f->work.path) };
    if (! plan->base)
        return mur_fail (err, E_RUN_014,
                         "no folder to compose the sealed root on: none of /tmp, /run, /var/tmp, "
                         "/mnt, /media can be used with the work folder %s",
                         f->work.path);
    struct draft d = { .arena = a };
    /* Required first: a later, optional bind of the same target must not downgrade one. */
    for (size_t i = 0; f->staged_trees && f->staged_trees[i]; i++)
        add_tree (&d, f->staged_trees[i], true);
    for (size_t i = 0; mount_system_trees[i]; i++)
        add_system_tree (&d, mount_system_trees[i]);
    for (size_t i = 0; f->read_only && f->read_only[i]; i++)
        if (! fs_path_is_within (f->read_only[i], "/usr"))
            add_tree (&d, f->read_only[i], false);
    for (size_t i = 0; mount_etc_entries[i]; i++)
        add_tree (&d, mount_etc_entries[i], false);
    for (size_t i = 0; f->links && f->links[i]; i += 2)
        if (! is_shown (&d, f->links[i]))
            add_link (&d, f->links[i + 1], f->links[i]);
    add_synthetic (&d, f, false);
    add_tree (&d, "/sys/devices/system/cpu", false);
    add_tree (&d, "/sys/kernel/mm/transparent_hugepage", false);
    plan->has_shm = plan->has_pts = true;
    add_folder (&d, &f->temp, "/tmp", false);
    move_behind_last (&d);
    if (is_among_records (f))
        add_folder (&d, &f->records, f->records.path, true);
    add_folder (&d, &f->work, f->work.path, false);
    add_protected (&d, f);
    add_folder (&d, &f->runtime, f->runtime.path, true);
    add_folder (&d, &f->records, f->records.path, true);
    add_folder (&d, &f->home, f->home.path, false);
    add_folder (&d, &f->temp, f->temp.path, false);
    finish (plan, &d, f->work.path);
    return true;
}

bool
mount_plan_is_current (const struct mount_plan *plan, const char **moved)
{
    for (size_t i = 0; i < plan->entry_count; i++) {
        const struct mount_entry *e = &plan->entries[i];
        struct stat st;
        *moved = e->source;
        if (! e->is_verified)
            continue;
        if (lstat (e->source, &st) < 0)
            return false;
        if (st.st_dev != e->dev || st.st_ino != e->ino) {
            errno = ESTALE;
            return false;
        }
    }
    return true;
}

/* --- building it (child) --- */

static int
clone_tree (const char *path)
{
    return (int)syscall (SYS_open_tree, AT_FDCWD, path,
                         OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_SYMLINK_NOFOLLOW);
}

static int
make_read_only (int tree_fd)
{
    /* Keeps every other flag of the mounts, which a remount by flags would have to repeat. */
    struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
    return (int)syscall (SYS_mount_setattr, tree_fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr,
                         sizeof attr);
}

/* Descriptor onto descriptor: the path is not walked again. Closes the mount point. */
static int
attach (int tree_fd, int point_fd)
{
    int status = (int)syscall (SYS_move_mount, tree_fd, "", point_fd, "",
                               MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
    int saved = errno;
    close (point_fd);
    errno = saved;
    return status;
}

/* Creates what is missing of an absolute path, level by level, and opens it. No link is followed:
 * below a session's temporary folder every level may be a command's doing. -1 with errno. */
static int
open_mount_point (const char *path, bool is_file)
{
    char name[NAME_MAX + 1];
    int at = open ("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (path += strspn (path, "/"); at >= 0 && *path; path += strspn (path, "/")) {
        size_t len = strcspn (path, "/");
        int next = -1, saved;
        struct stat st;
        if (len <= NAME_MAX) {
            memcpy (name, path, len);
            name[len] = '\0';
            path += len;
            bool is_last = ! path[strspn (path, "/")];
            if (is_last && is_file) {
                int made = openat (at, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
                if (made >= 0)
                    close (made);
                next = openat (at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
                if (next >= 0 && fstat (next, &st) == 0 && S_ISLNK (st.st_mode)) {
                    close (next);
                    next = -1;
                    errno = ELOOP;
                }
            } else {
                (void)mkdirat (at, name, is_last ? 0700 : 0755);
                next = openat (at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            }
        } else {
            errno = ENAMETOOLONG;
        }
        saved = errno;
        close (at);
        errno = saved;
        at = next;
    }
    return at;
}

/* Clones every source. A missing optional one leaves -1. */
static const char *
clone_sources (const struct mount_plan *plan, const char **detail)
{
    for (size_t i = 0; i < plan->entry_count; i++) {
        const struct mount_entry *e = &plan->entries[i];
        struct stat st;
        *detail = e->source;
        plan->tree_fds[i] = clone_tree (e->source);
        if (plan->tree_fds[i] < 0) {
            if (e->is_required)
                return "open_tree";
            continue;
        }
        if (e->is_verified) {
            if (fstat (plan->tree_fds[i], &st) < 0)
                return "fstat";
            if (st.st_dev != e->dev || st.st_ino != e->ino) {
                errno = ESTALE;
                return "compare the folder's identity";
            }
        }
        if (e->is_read_only && make_read_only (plan->tree_fds[i]) < 0)
            return "mount_setattr(MOUNT_ATTR_RDONLY)";
    }
    *detail = NULL;
    return NULL;
}

static const char *
attach_all (const struct mount_plan *plan, const char **detail)
{
    for (size_t i = 0; i < plan->entry_count; i++) {
        const struct mount_entry *e = &plan->entries[i];
        if (plan->tree_fds[i] < 0)
            continue;
        *detail = e->target;
        int point = open_mount_point (e->staged_target, e->is_file);
        if (point < 0)
            return "create a mount point";
        if (attach (plan->tree_fds[i], point) < 0)
            return "move_mount";
        close (plan->tree_fds[i]);
    }
    *detail = NULL;
    return NULL;
}

static const struct {
    const char *name;
    bool is_writable;
} devices[] = {
    { "null", true }, { "zero", true },    { "full", true },
    { "tty", true },  { "random", false }, { "urandom", false },
};

static const struct {
    const char *target, *name;
} device_links[] = {
    { "/proc/self/fd", "fd" },       { "/proc/self/fd/0", "stdin" },
    { "/proc/self/fd/1", "stdout" }, { "/proc/self/fd/2", "stderr" },
    { "pts/ptmx", "ptmx" },
};

/* Joins two path pieces into a caller's buffer. */
static const char *
join (char out[PATH_MAX], const char *a, const char *b)
{
    size_t la = strlen (a), lb = strlen (b);
    if (la + lb + 2 > PATH_MAX)
        return "";
    memcpy (out, a, la);
    out[la] = '/';
    memcpy (out + la + 1, b, lb + 1);
    return out;
}

/* Shared memory of the command's own: never the host's, where other programs leave theirs. */
static const char *
mount_shm (const char *path, const char **detail)
{
    *detail = path;
    if (mount ("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=1777,size=50%") < 0)
        return "mount(tmpfs)";
    *detail = NULL;
    return NULL;
}

/* Terminals of its own; where the kernel refuses there are none. <ptmx>: the host's node, which the
 * new one covers (NULL: a link leads there). */
static void
mount_pts (const char *path, const char *ptmx)
{
    char own[PATH_MAX];
    if (mount ("devpts", path, "devpts", MS_NOSUID | MS_NOEXEC,
               "newinstance,ptmxmode=0666,mode=0620") < 0 ||
        ! ptmx)
        return;
    int tree = clone_tree (join (own, path, "ptmx"));
    int point = open (ptmx, O_PATH | O_CLOEXEC | O_NOFOLLOW);
    if (tree >= 0 && point >= 0)
        (void)attach (tree, point);
    else if (point >= 0)
        close (point);
    if (tree >= 0)
        close (tree);
}

static const char *
make_dev (const char *dev, const char **detail)
{
    char path[PATH_MAX], source[PATH_MAX];
    *detail = "/dev";
    if (mkdir (dev, 0755) < 0 && errno != EEXIST)
        return "create a mount point";
    if (mount ("tmpfs", dev, "tmpfs", MS_NOSUID, "mode=0755,size=1m") < 0)
        return "mount(tmpfs)";
    for (size_t i = 0; i < ARRAY_LEN (devices); i++) {
        int tree = clone_tree (join (source, "/dev", devices[i].name));
        if (tree < 0)
            continue;
        if (! devices[i].is_writable && make_read_only (tree) < 0)
            return "mount_setattr(MOUNT_ATTR_RDONLY)";
        int point = open_mount_point (join (path, dev, devices[i].name), true);
        if (point < 0 || attach (tree, point) < 0)
            return "bind a device";
        close (tree);
    }
    if (mkdir (join (path, dev, "pts"), 0755) == 0)
        mount_pts (path, NULL);
    if (mkdir (join (path, dev, "shm"), 01777) == 0 && mount_shm (path, detail))
        return "mount(tmpfs)";
    for (size_t i = 0; i < ARRAY_LEN (device_links); i++)
        (void)symlink (device_links[i].target, join (path, dev, device_links[i].name));
    if (mount (NULL, dev, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID, NULL) < 0)
        return "remount /dev read-only";
    *detail = NULL;
    return NULL;
}

/* The one that is mounted here: of the session's process namespace, where there is one. */
static const char *
make_proc (const char *proc, int proc_fd, const char **detail)
{
    *detail = "/proc";
    if (mkdir (proc, 0555) < 0 && errno != EEXIST)
        return "create a mount point";
    int point = open_mount_point (proc, false);
    if (proc_fd < 0 || point < 0 || attach (proc_fd, point) < 0)
        return "bind /proc";
    close (proc_fd);
    *detail = NULL;
    return NULL;
}

/* With the folders above it. */
static void
make_link (const struct mount_link *l)
{
    char parent[PATH_MAX];
    size_t len = (size_t)(strrchr (l->staged_path, '/') - l->staged_path);
    if (len && len < sizeof parent) {
        memcpy (parent, l->staged_path, len);
        parent[len] = '\0';
        int fd = open_mount_point (parent, false);
        if (fd >= 0)
            close (fd);
    }
    (void)symlink (l->target, l->staged_path);
}

/* Those below the session's own /tmp once it is there, the others before anything is attached. */
static void
make_links (const struct mount_plan *plan, bool is_below_tmp)
{
    for (size_t i = 0; i < plan->link_count; i++)
        if (fs_path_is_within (plan->links[i].path, "/tmp") == is_below_tmp)
            make_link (&plan->links[i]);
}

static const char *
apply_tmp (const struct mount_plan *plan, const char **detail)
{
    if (unshare (CLONE_NEWNS) < 0)
        return "unshare(CLONE_NEWNS)";
    if (mount (NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return "mount(MS_REC|MS_PRIVATE, \"/\")";
    const char *failed = clone_sources (plan, detail);
    if (! failed)
        failed = attach_all (plan, detail);
    if (! failed)
        make_links (plan, true);
    /* What is not reached from here is not by a command either. */
    for (size_t i = 0; plan->covered && plan->covered[i]; i++)
        (void)mount ("/dev/null", plan->covered[i], NULL, MS_BIND, NULL);
    if (! failed && plan->has_shm)
        failed = mount_shm ("/dev/shm", detail);
    if (! failed && plan->has_pts)
        mount_pts ("/dev/pts", "/dev/ptmx");
    if (failed)
        return failed;
    /* The old working directory lies below what was covered. */
    return chdir (plan->work_dir) < 0 ? "chdir to the work folder" : NULL;
}

static const char *
enter_root (const struct mount_plan *plan)
{
    if (chdir (plan->base) < 0 || mkdir (".mur-oldroot", 0700) < 0)
        return "make the parking directory";
    if (syscall (SYS_pivot_root, ".", ".mur-oldroot") < 0)
        return "pivot_root";
    if (chdir ("/") < 0 || umount2 ("/.mur-oldroot", MNT_DETACH) < 0 || rmdir ("/.mur-oldroot") < 0)
        return "detach the old root";
    if (mount (NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) < 0)
        return "remount / read-only";
    return chdir (plan->work_dir) < 0 ? "chdir to the work folder" : NULL;
}

static const char *
apply_sealed (const struct mount_plan *plan, const char **detail)
{
    /* Nested below the session's user namespace, so that the command owns no right over its
     * network. */
    if (unshare (CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return "unshare(CLONE_NEWUSER|CLONE_NEWNS)";
    const char *failed = child_write_id_maps (plan->uid, plan->gid);
    if (failed)
        return failed;
    if (mount (NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return "mount(MS_REC|MS_PRIVATE, \"/\")";
    if ((failed = clone_sources (plan, detail)))
        return failed;
    int proc_fd = clone_tree ("/proc");
    if (mount ("tmpfs", plan->base, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") < 0)
        return "mount(tmpfs)";
    make_links (plan, false);
    if ((failed = make_dev (plan->staged_dev, detail)) ||
        (failed = make_proc (plan->staged_proc, proc_fd, detail)) ||
        (failed = attach_all (plan, detail)))
        return failed;
    make_links (plan, true);
    return enter_root (plan);
}

const char *
mount_plan_apply (const struct mount_plan *plan, const char **detail)
{
    *detail = NULL;
    switch (plan->kind) {
    case MOUNT_TMP:
        return apply_tmp (plan, detail);
    case MOUNT_SEALED:
        return apply_sealed (plan, detail);
    case MOUNT_NOTHING:
        break;
    }
    return chdir (plan->work_dir) < 0 ? "chdir to the work folder" : NULL;
}
