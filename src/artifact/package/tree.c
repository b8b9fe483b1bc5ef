/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/package/tree.h"

#include "base/alloc.h"
#include "base/ids.h"
#include "fs/paths.h"
#include "fs/root.h"
#include "home/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define TREES "mcp"

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
           fs_create (to, name, data.data ? data.data : "", data.len, 0644, true, err);
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

/* Beside its place, then renamed: whoever came first wins. */
static bool
make_tree (struct package *p, const char *prefix, int trees, struct mur_error **err)
{
    char id[37];
    uuid_text (id);
    _cleanup_free_ char *temp = x_asprintf (".%s", id);
    _cleanup_free_ char *path = home_path_below (TREES, err);
    if (mkdirat (trees, temp, 0700) < 0)
        return mur_fail_errno (err, E_IO_003, "cannot create a folder in %s", path);
    int fd = openat (trees, temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return mur_fail_errno (err, E_IO_003, "cannot open a folder in %s", path);
    _cleanup_ (fs_root_freep) struct fs_root *to = fs_root_new (fd, path, NULL, false);
    bool is_good = unpack (p, prefix, to, err);
    if (is_good && renameat (trees, temp, trees, p->sha256) < 0 && errno != EEXIST &&
        errno != ENOTEMPTY)
        is_good = mur_fail_errno (err, E_IO_003, "cannot make the folder %s/%s", path, p->sha256);
    (void)fs_remove_tree_at (trees, temp, NULL);
    return is_good;
}

static bool
is_there (int trees, const char *sha256)
{
    struct stat st;
    return fstatat (trees, sha256, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR (st.st_mode);
}

static char *
tree_path (const char *sha256, struct mur_error **err)
{
    _cleanup_free_ char *below = x_asprintf (TREES "/%s", sha256);
    _cleanup_free_ char *path = home_path_below (below, err);
    return path ? fs_canonical_path (path, err) : NULL;
}

char *
package_tree_of (struct package *p, const char *prefix, struct mur_error **err)
{
    _cleanup_close_ int trees = home_open_dir (TREES, err);
    if (trees < 0 || (! is_there (trees, p->sha256) &&
                      (! package_open_zip (p, err) || ! make_tree (p, prefix, trees, err))))
        return NULL;
    return tree_path (p->sha256, err);
}

char *
package_tree (const char *path, const char *sha256, const char *prefix, struct mur_error **err)
{
    _cleanup_close_ int trees = home_open_dir (TREES, err);
    if (trees < 0)
        return NULL;
    if (is_there (trees, sha256))
        return tree_path (sha256, err);
    _cleanup_package_ struct package *p = package_from_file (path, err);
    if (! p)
        return NULL;
    if (strcmp (p->sha256, sha256) != 0)
        return mur_fail (err, E_REG_002, "%s has the digest %s, not %s", path, p->sha256, sha256),
               NULL;
    return package_tree_of (p, prefix, err);
}
