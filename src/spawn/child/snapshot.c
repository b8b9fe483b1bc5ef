/* SPDX-License-Identifier: Apache-2.0 */
#include "spawn/child/snapshot.h"

#include "base/alloc.h"
#include "base/fdio.h"
#include "base/json.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "home/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define DEEPEST_LEVEL 200 /* two descriptors a level */
#define EXCLUDED      "excluded"
#define PIECE_BYTES   ((size_t)128 << 10)
/* The report is one argument of a program, 128 KiB at most; a byte of a path may be six in it. */
#define MOST_SHOWN_BYTES ((size_t)16 << 10)

/* A directory that is never looked into, by what it is and not by what it is called. */
struct exclusion {
    dev_t dev;
    ino_t ino;
};

struct copy {
    const struct snapshot *what;
    struct exclusion exclusions[2];
    size_t exclusion_count;
    char *runtime_home; /* ~/.murmur, NULL when there is none */
    uint64_t files, dirs, symlinks, repointed_symlinks, bytes, skipped_count;
    json_t *skipped;
    size_t shown_bytes; /* of the paths in it */
    char *piece;
    unsigned level;
};

static void
copy_clear (struct copy *c)
{
    free (c->runtime_home);
    json_decref (c->skipped);
    free (c->piece);
}

/* --- what is left out --- */

static void
skip (struct copy *c, const char *path, const char *reason)
{
    c->shown_bytes += strlen (path);
    if (c->skipped_count++ >= SNAPSHOT_SKIPPED_SHOWN || c->shown_bytes > MOST_SHOWN_BYTES)
        return;
    json_t *entry = json_object ();
    json_set_string (entry, "path", path);
    json_set_string (entry, "reason", reason);
    json_array_append_new (c->skipped, entry);
}

static void
exclude (struct copy *c, int fd)
{
    struct stat st;
    if (fd >= 0 && fstat (fd, &st) == 0)
        c->exclusions[c->exclusion_count++] = (struct exclusion){ st.st_dev, st.st_ino };
}

/* The child's own folder, which would copy itself for ever, and the runtime's own tree. */
static void
list_exclusions (struct copy *c)
{
    exclude (c, c->what->target_fd);
    c->runtime_home = home_path (NULL);
    _cleanup_close_ int home =
        c->runtime_home ? open (c->runtime_home, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    exclude (c, home);
}

static bool
is_excluded (const struct copy *c, const struct stat *st)
{
    for (size_t i = 0; i < c->exclusion_count; i++)
        if (c->exclusions[i].dev == st->st_dev && c->exclusions[i].ino == st->st_ino)
            return true;
    return false;
}

/* A tree that was left out may hold the child's folder: that one is named beside it. */
static void
skip_excluded (struct copy *c, const char *path)
{
    skip (c, path, EXCLUDED);
    const char *source = c->what->source_path, *target = c->what->target_path;
    _cleanup_free_ char *tree = x_asprintf ("%s/%s", source, path);
    if (strcmp (tree, target) != 0 && fs_path_is_within (target, tree))
        skip (c, target + strlen (source) + 1, EXCLUDED);
}

static const char *
kind_left_out (mode_t mode)
{
    return S_ISFIFO (mode)                    ? "fifo"
           : S_ISSOCK (mode)                  ? "socket"
           : S_ISCHR (mode) || S_ISBLK (mode) ? "device"
                                              : "unknown";
}

/* --- one entry --- */

static bool
fail (const struct copy *c, const char *path, struct mur_error **err)
{
    return mur_fail_errno (err, E_IO_003, "cannot copy %s/%s for %s", c->what->source_path, path,
                           c->what->capsule);
}

static bool
charge (struct copy *c, size_t bytes, struct mur_error **err)
{
    c->bytes += bytes;
    if (c->bytes <= c->what->limit_bytes)
        return true;
    return mur_fail (err, E_RUN_013,
                     "the work folder %s is too large for %s: its copy would pass the child's "
                     "capabilities.resources.workdir_max_bytes (%llu)",
                     c->what->source_path, c->what->capsule,
                     (unsigned long long)c->what->limit_bytes);
}

/* Moves both to what is written next; holes are counted and stay holes. False past the bound. */
static bool
skip_hole (struct copy *c, int from, int to, const char *path, struct mur_error **err)
{
    off_t at = lseek (from, 0, SEEK_CUR), data = lseek (from, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO)
        data = lseek (from, 0, SEEK_END);
    if (at < 0 || data <= at)
        return true;
    return charge (c, (size_t)(data - at), err) &&
           (lseek (to, data, SEEK_SET) == data || fail (c, path, err));
}

static bool
copy_content (struct copy *c, int from, int to, const char *path, struct mur_error **err)
{
    for (;;) {
        if (! skip_hole (c, from, to, path, err))
            return false;
        ssize_t n = read (from, c->piece, PIECE_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail (c, path, err);
        if (n == 0)
            return ftruncate (to, lseek (to, 0, SEEK_CUR)) == 0 || fail (c, path, err);
        if (! charge (c, (size_t)n, err))
            return false;
        if (! fd_write_all (to, c->piece, (size_t)n))
            return fail (c, path, err);
    }
}

/* Mode and time, last: writing below would change them again. */
static bool
finish (int fd, const struct stat *st)
{
    const struct timespec times[2] = { { 0, UTIME_OMIT }, st->st_mtim };
    return fchmod (fd, st->st_mode & 0777) == 0 && futimens (fd, times) == 0;
}

static bool
copy_file (struct copy *c, int from_dir, int to_dir, const char *name, const char *path,
           struct mur_error **err)
{
    struct stat st;
    _cleanup_close_ int from =
        openat (from_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (from < 0 && errno == ENOENT)
        return true; /* it went away since it was listed */
    if (from < 0 || fstat (from, &st) < 0)
        return fail (c, path, err);
    if (! S_ISREG (st.st_mode)) {
        skip (c, path, kind_left_out (st.st_mode));
        return true;
    }
    _cleanup_close_ int to =
        openat (to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to < 0)
        return fail (c, path, err);
    /* Told before it is written, not when the bound is reached. */
    if ((uint64_t)st.st_size > c->what->limit_bytes && ! charge (c, (size_t)st.st_size, err))
        return false;
    if (! copy_content (c, from, to, path, err))
        return false;
    c->files++;
    return finish (to, &st) || fail (c, path, err);
}

/* The rest below <base> of an absolute path, "." and ".." resolved by the text alone; NULL when it
 * leads elsewhere. Owned; "" for <base> itself. */
static char *
rest_below (const char *base, const char *target)
{
    _cleanup_free_ char *clean = x_malloc (strlen (target) + 2);
    size_t len = 0;
    for (const char *at = target; *at;) {
        at += strspn (at, "/");
        size_t word = strcspn (at, "/");
        if (word == 2 && strncmp (at, "..", 2) == 0) {
            while (len && clean[--len] != '/')
                ;
        } else if (word && ! (word == 1 && *at == '.')) {
            clean[len++] = '/';
            memcpy (clean + len, at, word);
            len += word;
        }
        at += word;
    }
    clean[len] = '\0';
    return fs_path_is_within (clean, base) ? x_strdup (clean + strlen (base)) : NULL;
}

static bool
copy_link (struct copy *c, int from_dir, int to_dir, const char *name, const char *path,
           struct mur_error **err)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat (from_dir, name, target, sizeof target - 1);
    if (len < 0 && (errno == ENOENT || errno == EINVAL))
        return true;
    if (len < 0)
        return fail (c, path, err);
    target[len] = '\0';
    _cleanup_free_ char *rest = target[0] == '/' ? rest_below (c->what->source_path, target) : NULL;
    _cleanup_free_ char *moved = rest ? x_asprintf ("%s%s", c->what->target_path, rest) : NULL;
    if (symlinkat (moved ? moved : target, to_dir, name) < 0)
        return fail (c, path, err);
    c->symlinks++;
    c->repointed_symlinks += moved != NULL;
    return true;
}

/* --- the walk --- */

static bool copy_level (struct copy *c, int from, int to, const char *path, struct mur_error **err);

static bool
copy_dir (struct copy *c, int from_dir, int to_dir, const char *name, const char *path,
          struct mur_error **err)
{
    struct stat st;
    _cleanup_close_ int from =
        openat (from_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (from < 0 && errno == ENOENT)
        return true;
    if (from < 0 || fstat (from, &st) < 0)
        return fail (c, path, err);
    if (is_excluded (c, &st)) {
        skip_excluded (c, path);
        return true;
    }
    if (c->level >= DEEPEST_LEVEL)
        return mur_fail (err, E_IO_003, "cannot copy %s for %s: it lies more than %d levels deep",
                         path, c->what->capsule, DEEPEST_LEVEL);
    if (mkdirat (to_dir, name, 0700) < 0)
        return fail (c, path, err);
    _cleanup_close_ int to = openat (to_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (to < 0)
        return fail (c, path, err);
    c->dirs++;
    c->level++;
    bool is_ok = copy_level (c, from, to, path, err);
    c->level--;
    return is_ok && (finish (to, &st) || fail (c, path, err));
}

static bool
copy_entry (struct copy *c, int from, int to, const char *name, const char *path,
            struct mur_error **err)
{
    struct stat st;
    if (fstatat (from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT || fail (c, path, err);
    switch (st.st_mode & S_IFMT) {
    case S_IFREG:
        return copy_file (c, from, to, name, path, err);
    case S_IFDIR:
        return copy_dir (c, from, to, name, path, err);
    case S_IFLNK:
        return copy_link (c, from, to, name, path, err);
    default:
        skip (c, path, kind_left_out (st.st_mode));
        return true;
    }
}

static bool
list_names (int fd, struct strv *names)
{
    int copy = openat (fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_closedir_ DIR *dir = copy < 0 ? NULL : fdopendir (copy);
    if (! dir) {
        if (copy >= 0)
            close (copy);
        return false;
    }
    for (struct dirent *e; (e = readdir (dir));)
        if (strcmp (e->d_name, ".") != 0 && strcmp (e->d_name, "..") != 0)
            strv_push (names, e->d_name);
    strv_sort (names);
    return true;
}

static bool
copy_level (struct copy *c, int from, int to, const char *path, struct mur_error **err)
{
    _cleanup_strv_ struct strv names = { 0 };
    if (! list_names (from, &names))
        return fail (c, path, err);
    for (size_t i = 0; i < names.len; i++) {
        if (cancel_is_raised (c->what->cancel))
            return mur_fail (err, E_IO_003, "the copy for %s was cancelled", c->what->capsule);
        _cleanup_free_ char *below =
            *path ? x_asprintf ("%s/%s", path, names.items[i]) : x_strdup (names.items[i]);
        if (! copy_entry (c, from, to, names.items[i], below, err))
            return false;
    }
    return true;
}

static char *
report (const struct copy *c)
{
    _cleanup_json_ json_t *o = json_object ();
    json_set_string (o, "source", c->what->source_path);
    json_set_u64 (o, "files", c->files);
    json_set_u64 (o, "dirs", c->dirs);
    json_set_u64 (o, "symlinks", c->symlinks);
    json_set_u64 (o, "repointed_symlinks", c->repointed_symlinks);
    json_set_u64 (o, "bytes", c->bytes);
    json_set_u64 (o, "skipped_count", c->skipped_count);
    json_object_set (o, "skipped", c->skipped);
    return json_text (o, JSON_TEXT_ORDERED);
}

char *
snapshot_take (const struct snapshot *what, struct mur_error **err)
{
    _cleanup_ (copy_clear) struct copy c = { .what = what,
                                             .skipped = json_array (),
                                             .piece = x_malloc (PIECE_BYTES) };
    _cleanup_close_ int source = fs_walk_absolute (what->source_path, false, err);
    if (source < 0)
        return NULL;
    list_exclusions (&c);
    return copy_level (&c, source, what->target_fd, "", err) ? report (&c) : NULL;
}
