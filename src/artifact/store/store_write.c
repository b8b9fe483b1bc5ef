/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/store/store_write.h"

#include "artifact/names/name.h"
#include "artifact/names/version.h"
#include "artifact/package/judge.h"
#include "artifact/store/store_internal.h"
#include "artifact/store/store_meta.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/fdio.h"
#include "base/ids.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "home/paths.h"
#include "manifest/settings/artifact_manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define STALE_SECONDS 3600

/* --- checks before the disk is touched --- */

static bool
check_hash (const struct package *p, const struct store_write *w, struct mur_error **err)
{
    if (! w->expected_sha256 || strcmp (w->expected_sha256, p->sha256) == 0)
        return true;
    return mur_fail (err, E_REG_002, "%s@%s: the bytes hash to %s but %s was expected", w->name,
                     w->version, p->sha256, w->expected_sha256);
}

static bool
check_packed (struct package *p, const struct store_write *w, struct mur_error **err)
{
    if (! package_try_open (p))
        return true;
    const char *packed = p->manifest->name;
    if (strcmp (packed, name_bare (w->name)) != 0) {
        _cleanup_free_ char *scope = name_scope (w->name);
        mur_fail (err, E_REG_002, "%s@%s: the archive's own manifest is named \"%s\"", w->name,
                  w->version, packed);
        return mur_hint (err, "its full name here is %s/%s", scope, packed);
    }
    const struct model_limits *models;
    size_t model_count;
    if (! artifact_manifest_models (p->manifest, E_REG_011, &models, &model_count, err))
        return mur_context (err, "%s@%s", w->name, w->version);
    return package_open_zip (p, err) && package_check_bytes (p, err);
}

/* --- the three files --- */

enum part {
    PART_PAYLOAD,
    PART_HASH,
    PART_META,
    PART_COUNT,
};

static const struct {
    const char *ending; /* of the final name */
    const char *mark;   /* in the temporary name */
} parts[PART_COUNT] = {
    [PART_PAYLOAD] = { ".mur.zip", "zip" },
    [PART_HASH] = { ".sha256", "sha" },
    [PART_META] = { ".meta.json", "meta" },
};

struct trio {
    int dir_fd;
    const char *dir;
    char *final[PART_COUNT];
    char *temporary[PART_COUNT];
    char *backup[PART_COUNT];
    bool is_written[PART_COUNT];   /* temporary exists */
    bool is_backed_up[PART_COUNT]; /* backup exists */
    bool is_placed[PART_COUNT];    /* final is ours */
};

static void
trio_init (struct trio *t, int dir_fd, const char *dir, const char *stem)
{
    char seed[37];
    uuid_text (seed);
    *t = (struct trio){ .dir_fd = dir_fd, .dir = dir };
    for (int i = 0; i < PART_COUNT; i++) {
        t->final[i] = x_asprintf ("%s%s", stem, parts[i].ending);
        t->temporary[i] = x_asprintf (".%s.%s.%s.tmp", t->final[i], parts[i].mark, seed);
        t->backup[i] = x_asprintf (".%s.%s.bak", t->final[i], seed);
    }
}

static void
trio_clear (struct trio *t)
{
    for (int i = 0; i < PART_COUNT; i++) {
        if (t->is_written[i])
            unlinkat (t->dir_fd, t->temporary[i], 0);
        free (t->final[i]);
        free (t->temporary[i]);
        free (t->backup[i]);
    }
}

static bool
write_temporary (struct trio *t, enum part part, const void *data, size_t len,
                 struct mur_error **err)
{
    _cleanup_close_ int fd = openat (t->dir_fd, t->temporary[part],
                                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return mur_fail_errno (err, E_IO_003, "cannot create %s/%s", t->dir, t->temporary[part]);
    t->is_written[part] = true;
    if (! fd_write_all (fd, data, len) || fsync (fd) != 0)
        return mur_fail_errno (err, E_IO_003, "cannot write %s/%s", t->dir, t->final[part]);
    return true;
}

static bool
exists_at (int dir_fd, const char *name)
{
    struct stat st;
    return fstatat (dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool
back_up (struct trio *t, struct mur_error **err)
{
    for (int i = 0; i < PART_COUNT; i++) {
        if (! exists_at (t->dir_fd, t->final[i]))
            continue;
        if (renameat (t->dir_fd, t->final[i], t->dir_fd, t->backup[i]) != 0)
            return mur_fail_errno (err, E_IO_003, "cannot move %s/%s aside", t->dir, t->final[i]);
        t->is_backed_up[i] = true;
    }
    return true;
}

static bool
place (struct trio *t, enum store_overwrite overwrite, struct mur_error **err)
{
    unsigned flags = overwrite == STORE_PUBLISH ? RENAME_NOREPLACE : 0;
    for (int i = 0; i < PART_COUNT; i++) {
        if (! t->is_written[i])
            continue;
        if (renameat2 (t->dir_fd, t->temporary[i], t->dir_fd, t->final[i],
                       i == PART_META ? 0 : flags) != 0)
            return mur_fail_errno (err, E_IO_003, "cannot put %s/%s in place", t->dir, t->final[i]);
        t->is_written[i] = false;
        t->is_placed[i] = true;
    }
    return true;
}

/* Takes away what was placed and puts back what was moved aside, last first. */
static void
roll_back (struct trio *t)
{
    for (int i = PART_COUNT - 1; i >= 0; i--) {
        if (t->is_placed[i])
            unlinkat (t->dir_fd, t->final[i], 0);
        if (t->is_backed_up[i])
            renameat (t->dir_fd, t->backup[i], t->dir_fd, t->final[i]);
    }
}

static void
drop_backups (struct trio *t)
{
    for (int i = 0; i < PART_COUNT; i++)
        if (t->is_backed_up[i])
            unlinkat (t->dir_fd, t->backup[i], 0);
}

static bool
refuse_published (const struct trio *t, const struct store_write *w, struct mur_error **err)
{
    mur_fail (err, E_REG_003, "%s@%s is already published (%s/%s)", w->name, w->version, t->dir,
              t->final[PART_PAYLOAD]);
    return mur_hint (err, "give it a new version; what is published is never replaced");
}

static bool
commit (struct trio *t, const struct store_write *w, struct mur_error **err)
{
    /* The renames below refuse to replace, too: two publishers may both have come past this look.
     */
    if (w->overwrite == STORE_PUBLISH && (exists_at (t->dir_fd, t->final[PART_PAYLOAD]) ||
                                          exists_at (t->dir_fd, t->final[PART_HASH])))
        return refuse_published (t, w, err);
    if ((w->overwrite == STORE_INSTALL && ! back_up (t, err)) || ! place (t, w->overwrite, err)) {
        roll_back (t);
        return false;
    }
    drop_backups (t);
    fsync (t->dir_fd);
    return true;
}

/* --- directories --- */

static bool
make_dirs (const char *path, struct mur_error **err)
{
    _cleanup_free_ char *at = x_strdup (path);
    char *slash = at;
    do {
        slash = strchr (slash + 1, '/');
        if (slash)
            *slash = '\0';
        if (mkdir (at, 0777) != 0 && errno != EEXIST)
            return mur_fail_errno (err, errno == EACCES ? E_IO_002 : E_IO_003, "cannot create %s",
                                   at);
        if (slash)
            *slash = '/';
    } while (slash);
    return true;
}

static int
open_version_dir (const struct store *s, const char *dir, struct mur_error **err)
{
    if (s->kind == STORE_GLOBAL) {
        /* ~/.murmur is private, whoever creates it first. */
        _cleanup_close_ int home_fd = home_open_dir ("", err);
        if (home_fd < 0)
            return -1;
    }
    if (! make_dirs (dir, err))
        return -1;
    int fd = open (dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        mur_fail_errno (err, E_IO_003, "cannot open %s", dir);
    return fd;
}

/* Hidden temporaries of writers that were killed. Young ones may belong to a writer at work. */
static void
sweep_stale (int dir_fd)
{
    int fd = fcntl (dir_fd, F_DUPFD_CLOEXEC, 3);
    _cleanup_closedir_ DIR *d = fd >= 0 ? fdopendir (fd) : NULL;
    if (! d)
        return;
    time_t now = time (NULL);
    rewinddir (d);
    for (struct dirent *e; (e = readdir (d));) {
        struct stat st;
        if (e->d_name[0] == '.' && (str_ends (e->d_name, ".tmp") || str_ends (e->d_name, ".bak")) &&
            fstatat (dir_fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG (st.st_mode) &&
            now - st.st_ctime > STALE_SECONDS)
            unlinkat (dir_fd, e->d_name, 0);
    }
}

/* --- putting --- */

/* True when the very payload is stored already and intact: then only its sidecar is renewed, and a
 * reader never misses it. */
static bool
is_stored_already (const struct package *p, const char *dir, const char *stem)
{
    _cleanup_payload_ struct store_payload there = {
        .path = store_archive_path (dir, stem),
        .sha256 = x_strdup (p->sha256),
    };
    _cleanup_free_ char *hash_path = x_asprintf ("%s/%s.sha256", dir, stem);
    _cleanup_buf_ struct buf hash = { 0 };
    if (! fs_read_path (hash_path, 4096, &hash, NULL) || ! str_eq (hash.data, p->sha256))
        return false;
    _cleanup_package_ struct package *stored = store_read (&there, "", "", NULL);
    return stored != NULL;
}

static bool
write_trio (struct package *p, const struct store_write *w, struct trio *t, bool only_meta,
            struct mur_error **err)
{
    struct store_meta meta;
    store_meta_of_package (p, w->name, w->version, w->platform, &meta);
    if (w->forces_native) {
        free (meta.runtime);
        meta.runtime = x_strdup (packaging_name (PACKAGING_NATIVE));
    }
    meta.has_owner_id = w->has_owner_id;
    meta.owner_id = w->owner_id;
    _cleanup_free_ char *text = store_meta_text (&meta);
    store_meta_clear (&meta);
    if (! only_meta && (! write_temporary (t, PART_PAYLOAD, p->bytes, p->len, err) ||
                        ! write_temporary (t, PART_HASH, p->sha256, SHA256_HEX_LEN, err)))
        return false;
    if (! write_temporary (t, PART_META, text, strlen (text), err))
        return false;
    return only_meta ? place (t, w->overwrite, err) : commit (t, w, err);
}

/* The envelope beside the archive: that of these bytes, or none. */
static bool
put_signature (const struct package *p, const char *dir, const char *stem, struct mur_error **err)
{
    _cleanup_free_ char *path = x_asprintf ("%s/%s.mur.zip" PACKAGE_SIGNATURE_ENDING, dir, stem);
    if (p->signature)
        return fs_replace_path (path, p->signature, strlen (p->signature), 0644, true, err);
    return unlink (path) == 0 || errno == ENOENT ||
           mur_fail_errno (err, E_IO_003, "cannot remove %s", path);
}

bool
store_put (const struct store *s, struct package *p, const struct store_write *w, char **path,
           struct mur_error **err)
{
    if (s->kind == STORE_BUNDLED || ! s->root || name_has_scope (w->name, SCOPE_BUNDLED))
        return mur_fail (err, E_IO_003, "%s@%s: the scope \"%s\" is read-only", w->name, w->version,
                         SCOPE_BUNDLED);
    if (! check_hash (p, w, err) || ! name_check_full (w->name, E_REG_007, NULL, err) ||
        ! version_check_segment (w->version, err) ||
        (w->platform && ! version_check_segment (w->platform, err)) || ! check_packed (p, w, err))
        return false;
    _cleanup_free_ char *dir = store_version_dir (s, w->name, w->version);
    _cleanup_free_ char *stem = store_stem (w->name, w->version, w->platform);
    _cleanup_close_ int dir_fd = open_version_dir (s, dir, err);
    if (dir_fd < 0)
        return false;
    sweep_stale (dir_fd);
    struct trio t;
    trio_init (&t, dir_fd, dir, stem);
    bool only_meta = w->overwrite == STORE_INSTALL && is_stored_already (p, dir, stem);
    bool ok = write_trio (p, w, &t, only_meta, err);
    trio_clear (&t);
    ok = ok && put_signature (p, dir, stem, err);
    if (ok && path)
        *path = store_archive_path (dir, stem);
    return ok;
}
