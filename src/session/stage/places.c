/* SPDX-License-Identifier: Apache-2.0 */
#include "session/stage/places.h"
#include "fs/latch.h"
#include "fs/paths.h"
#include "home/session_dirs.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/ids.h"
#include "home/paths.h"
#include "manifest/capsule/capsule_mask.h"
#include "session/state/session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define EMPTY_KEPT_SECS 3600
#define MOST_LOOKED_AT  10000

/* --- the work folder --- */

/* Whether a session of this user still has it; of another home that cannot be known, so what is
 * young is left alone. */
static bool
may_be_in_use (int parent, const char *name)
{
    struct stat st;
    _cleanup_free_ char *below = x_asprintf ("sessions/%s", name);
    _cleanup_free_ char *runs = home_path_below (below, NULL);
    return fstatat (parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || ! S_ISDIR (st.st_mode) ||
           st.st_uid != geteuid () || time (NULL) - st.st_mtime < EMPTY_KEPT_SECS || ! runs ||
           access (runs, F_OK) == 0;
}

/* Sessions that wrote nothing leave empty folders; those of before go when another is made. Only
 * what is empty can be removed this way. */
static void
remove_empty_ones (const char *parent)
{
    DIR *dir = opendir (parent);
    const struct dirent *entry;
    for (size_t seen = 0; dir && seen < MOST_LOOKED_AT && (entry = readdir (dir)); seen++)
        if (id_is_valid (entry->d_name, "ses_") && ! may_be_in_use (dirfd (dir), entry->d_name))
            (void)unlinkat (dirfd (dir), entry->d_name, AT_REMOVEDIR);
    if (dir)
        closedir (dir);
}

static bool
create_default_work_dir (struct session *s, struct mur_error **err)
{
    _cleanup_free_ char *parent = x_asprintf ("%s/workdir", s->asked->file.dir);
    if (mkdir (parent, 0777) != 0 && errno != EEXIST) {
        mur_fail_errno (err, E_IO_003, "cannot create %s", parent);
        return mur_hint (err, "give the session a folder that can be written: --workdir <FOLDER>");
    }
    remove_empty_ones (parent);
    s->places.work_path = x_asprintf ("%s/%s", parent, s->id.text);
    if (mkdir (s->places.work_path, 0777) != 0)
        return mur_fail_errno (err, E_IO_003, "cannot create the work folder %s",
                               s->places.work_path);
    return true;
}

/* The launcher that names a device and inode gets exactly that directory or nothing. */
static bool
check_identity (const struct session *s, int fd, struct mur_error **err)
{
    struct stat st;
    if (! s->asked->work.has_identity)
        return true;
    if (fstat (fd, &st) != 0)
        return mur_fail_errno (err, E_IO_003, "cannot read %s", s->places.work_path);
    if (st.st_dev == s->asked->work.dev && st.st_ino == s->asked->work.ino)
        return true;
    return mur_fail (
        err, E_RUN_051, "--workdir %s is %llu:%llu, the parent's directory is %llu:%llu",
        s->places.work_path, (unsigned long long)st.st_dev, (unsigned long long)st.st_ino,
        (unsigned long long)s->asked->work.dev, (unsigned long long)s->asked->work.ino);
}

/* An exported root that leads out of the work folder now would be refused to every reader: better
 * said at launch. */
static bool
check_export_root (const struct session *s, const char *root, const char *key,
                   struct mur_error **err)
{
    _cleanup_free_ char *written = x_asprintf ("%s/%s", s->asked->work.root, root);
    _cleanup_free_ char *real = fs_canonical_path (written, err);
    if (! real)
        return false;
    if (fs_path_is_within (real, s->asked->work.root))
        return true;
    capsule_manifest_fail (s->manifest, err, E_CAP_007, key, "%s resolves to %s, outside %s", root,
                           real, s->asked->work.root);
    return mur_hint (err, "remove the link, or export a folder of the work folder");
}

static bool
check_export_roots (const struct session *s, struct mur_error **err)
{
    const struct exports *e = s->manifest->exports;
    return ! e ||
           ((! e->files || check_export_root (s, e->files->root, "exports.files.root", err)) &&
            (! e->peer_files ||
             check_export_root (s, e->peer_files->root, "exports.peer_files.root", err)));
}

bool
stage_work_dir (struct session *s, struct mur_error **err)
{
    if (s->asked->player)
        return true; /* among its records, which are not there yet */
    if (! check_export_roots (s, err))
        return false;
    if (s->asked->work.dir)
        s->places.work_path = x_strdup (s->asked->work.root);
    else if (! create_default_work_dir (s, err))
        return false;
    int fd = open (s->places.work_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return mur_fail_errno (err, E_IO_003, "the work folder %s", s->places.work_path);
    s->places.work = fs_root_new (fd, s->places.work_path, s->places.latch, false);
    return check_identity (s, fd, err);
}

/* --- runtime and records directories --- */

static bool
needs_hooks_dir (const struct session *s)
{
    for (size_t i = 0; i < s->kit.artifact_count; i++)
        if (s->kit.artifacts[i].grant->opens_records_hooks)
            return true;
    return false;
}

static void
end_dirs (struct session *s)
{
    home_session_end (&s->places.dirs);
}

/* A replay works in a folder of its own: the one it replays is the user's. */
static bool
make_replay_work (struct session *s, struct mur_error **err)
{
    s->places.work_path = x_asprintf ("%s/work", s->places.dirs.records_path);
    if (! fs_make_dirs (s->places.records, "work", 0700, true, err))
        return false;
    int fd = fs_open_dir (s->places.records, "work", err);
    if (fd >= 0)
        s->places.work = fs_root_new (fd, s->places.work_path, s->places.latch, false);
    return fd >= 0;
}

bool
stage_session_dirs (struct session *s, struct mur_error **err)
{
    if (! home_session_create (&s->places.dirs, s->id.text, s->asked->work.root, err))
        return false;
    s->places.has_dirs = true;
    last_acts_add (s, end_dirs);
    s->places.runtime = fs_root_new (steal_fd (&s->places.dirs.runtime_fd),
                                     s->places.dirs.runtime_path, s->places.latch, false);
    s->places.records = fs_root_new (steal_fd (&s->places.dirs.records_fd),
                                     s->places.dirs.records_path, s->places.latch, true);
    if (s->asked->player && ! make_replay_work (s, err))
        return false;
    if (needs_hooks_dir (s) && ! fs_make_dirs (s->places.records, "hooks", 0700, true, err))
        return false;
    /* A script without artifacts has no tools; what it pulls later makes the folder with it. */
    bool has_tools = s->manifest->inference || s->kit.artifact_count > 0;
    return ! has_tools || fs_make_dirs (s->places.runtime, "tools", 0777, false, err);
}

/* --- the manifest --- */

bool
stage_manifest_copy (struct session *s, struct mur_error **err)
{
    const struct stage_request *r = s->asked;
    if (! r->file.name)
        return true;
    _cleanup_buf_ struct buf copy = { 0 };
    capsule_manifest_mask (s->manifest, r->file.text, r->file.len, &copy);
    return fs_create (s->places.runtime, r->file.name, copy.data, copy.len, r->file.mode & 0777,
                      true, err);
}

/* --- the end --- */

void
places_new (struct session *s)
{
    s->places.bootstrap_fd = -1;
    s->places.latch = fs_latch_new ();
}

void
places_free (struct session *s)
{
    struct places *p = &s->places;
    if (p->work)
        fs_root_free (p->work);
    if (p->runtime)
        fs_root_free (p->runtime);
    if (p->records)
        fs_root_free (p->records);
    if (p->bootstrap_fd >= 0) {
        diag_set_fallback (-1);
        close (p->bootstrap_fd);
    }
    if (p->has_dirs)
        home_session_end (&p->dirs);
    fs_latch_free (p->latch);
    free (p->work_path);
}
