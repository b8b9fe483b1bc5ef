/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/package/tree.h"

#include "base/alloc.h"
#include "base/ids.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "fs/tree.h"
#include "home/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#define TREES "mcp"
#define STAMP ".stamp"

/* One entry may not be larger, and neither may all of them together. */
static bool
unpack_entry (struct package *p, const struct zip_entry *e, size_t prefix_len, struct fs_root *to,
              uint64_t *left, struct mur_error **err)
{
    const char *name = e->name + prefix_len;
    _cleanup_buf_ struct buf data = { 0 };
    size_t len = strlen (name);
    if (! len || name[len - 1] == '/')
        return true;
    if (! zip_read (p->zip, e, *left, &data, NULL, err))
        return mur_context (err, "%s", p->label);
    *left -= data.len;
    const char *slash = strrchr (name, '/');
    _cleanup_free_ char *dir = slash ? x_strndup (name, (size_t)(slash - name)) : NULL;
    return (! dir || fs_make_dirs (to, dir, 0755, true, err)) &&
           fs_create (to, name, data.data ? data.data : "", data.len, 0444, true, err);
}

static bool
unpack (struct package *p, const char *prefix, struct fs_root *to, struct mur_error **err)
{
    size_t prefix_len = strlen (prefix);
    uint64_t left = zip_ceiling ();
    for (size_t i = 0; i < zip_count (p->zip); i++) {
        const struct zip_entry *e = zip_at (p->zip, i);
        if (str_starts (e->name, prefix) && ! unpack_entry (p, e, prefix_len, to, &left, err))
            return mur_context (err, "while unpacking %s", p->label);
    }
    return true;
}

static struct fs_root *
open_tree (struct fs_root *trees, const char *name)
{
    int fd = openat (fs_root_fd (trees), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? NULL : fs_root_new (fd, fs_root_path (trees), NULL, false);
}

/* --- how it was left --- */

static bool
write_stamp (struct fs_root *trees, const char *sha256, struct mur_error **err)
{
    char stamp[SHA256_HEX_LEN + 1];
    _cleanup_free_ char *name = x_asprintf ("%s" STAMP, sha256);
    _cleanup_ (fs_root_freep) struct fs_root *tree = open_tree (trees, sha256);
    if (! tree)
        return mur_fail_errno (err, E_IO_003, "cannot open %s/%s", fs_root_path (trees), sha256);
    return tree_stamp (tree, stamp, err) &&
           fs_write (trees, name, stamp, SHA256_HEX_LEN, 0600, true, err);
}

static bool
is_as_left (struct fs_root *trees, const char *sha256)
{
    char stamp[SHA256_HEX_LEN + 1];
    _cleanup_buf_ struct buf left = { 0 };
    _cleanup_error_ struct mur_error *ignored = NULL;
    _cleanup_free_ char *name = x_asprintf ("%s" STAMP, sha256);
    _cleanup_ (fs_root_freep) struct fs_root *tree = open_tree (trees, sha256);
    return tree && fs_read (trees, name, SHA256_HEX_LEN, &left, &ignored) &&
           left.len == SHA256_HEX_LEN && tree_stamp (tree, stamp, &ignored) &&
           memcmp (stamp, left.data, SHA256_HEX_LEN) == 0;
}

/* --- making it --- */

/* What is at its place goes: by another name first, so that nobody meets half of it. */
static bool
put_in_place (struct fs_root *trees, const char *temp, const char *sha256, struct mur_error **err)
{
    int fd = fs_root_fd (trees);
    _cleanup_free_ char *old = x_asprintf ("%s.old", temp);
    bool is_taken = renameat (fd, sha256, fd, old) == 0;
    if (! is_taken && errno != ENOENT)
        return mur_fail_errno (err, E_IO_003, "cannot replace %s/%s", fs_root_path (trees), sha256);
    bool is_good =
        renameat (fd, temp, fd, sha256) == 0 ||
        mur_fail_errno (err, E_IO_003, "cannot make %s/%s", fs_root_path (trees), sha256);
    if (is_taken)
        (void)fs_remove_tree_at (fd, old, NULL);
    return is_good && write_stamp (trees, sha256, err);
}

static bool
make_tree (struct package *p, const char *prefix, struct fs_root *trees, struct mur_error **err)
{
    char id[37];
    uuid_text (id);
    _cleanup_free_ char *temp = x_asprintf (".%s", id);
    if (mkdirat (fs_root_fd (trees), temp, 0700) < 0)
        return mur_fail_errno (err, E_IO_003, "cannot create a folder in %s", fs_root_path (trees));
    _cleanup_ (fs_root_freep) struct fs_root *to = open_tree (trees, temp);
    if (! to)
        return mur_fail_errno (err, E_IO_003, "cannot open a folder in %s", fs_root_path (trees));
    bool is_good = unpack (p, prefix, to, err) && put_in_place (trees, temp, p->sha256, err);
    (void)fs_remove_tree_at (fs_root_fd (trees), temp, NULL);
    return is_good;
}

/* One at a time: nobody takes away what another one has just made. Let go with the descriptor. */
static struct fs_root *
hold_trees (struct mur_error **err)
{
    _cleanup_close_ int fd = home_open_dir (TREES, err);
    _cleanup_free_ char *path = fd < 0 ? NULL : home_path_below (TREES, err);
    if (! path)
        return NULL;
    while (flock (fd, LOCK_EX) < 0)
        if (errno != EINTR)
            return mur_fail_errno (err, E_IO_003, "cannot lock %s", path), NULL;
    return fs_root_new (steal_fd (&fd), path, NULL, false);
}

static char *
tree_path (const char *sha256, struct mur_error **err)
{
    _cleanup_free_ char *below = x_asprintf (TREES "/%s", sha256);
    _cleanup_free_ char *path = home_path_below (below, err);
    return path ? fs_canonical_path (path, err) : NULL;
}

static char *
tree_of (struct package *p, const char *prefix, struct fs_root *trees, struct mur_error **err)
{
    if (! package_open_zip (p, err) || ! make_tree (p, prefix, trees, err))
        return NULL;
    return tree_path (p->sha256, err);
}

char *
package_tree_of (struct package *p, const char *prefix, struct mur_error **err)
{
    _cleanup_ (fs_root_freep) struct fs_root *trees = hold_trees (err);
    if (! trees)
        return NULL;
    return is_as_left (trees, p->sha256) ? tree_path (p->sha256, err)
                                         : tree_of (p, prefix, trees, err);
}

char *
package_tree (const char *path, const char *sha256, const char *prefix, struct mur_error **err)
{
    _cleanup_ (fs_root_freep) struct fs_root *trees = hold_trees (err);
    if (! trees)
        return NULL;
    if (is_as_left (trees, sha256))
        return tree_path (sha256, err);
    _cleanup_package_ struct package *p = package_from_file (path, err);
    if (! p)
        return NULL;
    if (strcmp (p->sha256, sha256) != 0)
        return mur_fail (err, E_REG_002, "%s has the digest %s, not %s", path, p->sha256, sha256),
               NULL;
    return tree_of (p, prefix, trees, err);
}
