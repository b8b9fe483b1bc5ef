/* SPDX-License-Identifier: Apache-2.0 */
#include "spawn/child/work_folder.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/diag.h"
#include "base/digest.h"
#include "fs/paths.h"
#include "fs/root.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define CHILDREN "children"

char *
work_folder_path (const char *parent_records_dir, const char *capsule)
{
    unsigned char raw[8];
    char hex[2 * sizeof raw + 1];
    random_bytes (raw, sizeof raw);
    hex_encode (raw, sizeof raw, hex);
    const char *slash = strrchr (capsule, '/');
    return x_asprintf ("%s/" CHILDREN "/%s-%s", parent_records_dir, slash ? slash + 1 : capsule,
                       hex);
}

static int
open_level (int dir_fd, const char *name, const char *path, struct mur_error **err)
{
    _cleanup_close_ int fd = openat (dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
        return mur_fail (err, E_RUN_050,
                         "%s is not a directory of its own: a child's folder is "
                         "made through no link",
                         path),
               -1;
    if (fd < 0 || fchmod (fd, 0700) < 0)
        return mur_fail_errno (err, E_IO_003, "cannot open %s", path), -1;
    return steal_fd (&fd);
}

bool
work_folder_make (const char *parent_records_dir, const char *capsule, struct work_folder *out,
                  struct mur_error **err)
{
    struct stat st;
    *out = (struct work_folder){ .fd = -1, .children_fd = -1 };
    _cleanup_free_ char *path = work_folder_path (parent_records_dir, capsule);
    const char *name = strrchr (path, '/') + 1;
    _cleanup_free_ char *children = x_strndup (path, (size_t)(name - path - 1));
    _cleanup_close_ int parent_fd =
        open (parent_records_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (parent_fd < 0)
        return mur_fail_errno (err, errno == ELOOP || errno == ENOTDIR ? E_RUN_050 : E_IO_003,
                               "cannot open %s", parent_records_dir);
    if (mkdirat (parent_fd, CHILDREN, 0700) < 0 && errno != EEXIST)
        return mur_fail_errno (err, E_IO_003, "cannot make %s", children);
    _cleanup_close_ int children_fd = open_level (parent_fd, CHILDREN, children, err);
    if (children_fd < 0)
        return false;
    if (mkdirat (children_fd, name, 0700) < 0)
        return mur_fail_errno (err, E_IO_003, "cannot make %s", path);
    _cleanup_close_ int fd = open_level (children_fd, name, path, err);
    if (fd < 0 || fstat (fd, &st) < 0)
        return mur_fail_errno (err, E_IO_003, "cannot open %s", path);
    *out = (struct work_folder){ steal_ptr (&path), steal_fd (&fd), steal_fd (&children_fd),
                                 st.st_dev, st.st_ino };
    return true;
}

void
work_folder_close (struct work_folder *f)
{
    cleanup_closep (&f->fd);
    cleanup_closep (&f->children_fd);
    free (f->path);
    *f = (struct work_folder){ .fd = -1, .children_fd = -1 };
}

void
work_folder_discard (struct work_folder *f)
{
    _cleanup_error_ struct mur_error *err = NULL;
    if (f->path && ! fs_remove_tree_at (f->children_fd, strrchr (f->path, '/') + 1, &err))
        diag_plain_warning ("%s was not removed: %s", f->path, err->message);
    work_folder_close (f);
}
