/* SPDX-License-Identifier: Apache-2.0 */
#include "fs/growing.h"

#include "base/alloc.h"
#include "base/fdio.h"
#include "fs/replace.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct fs_growing {
    char *path, *temp;
    int fd;
    bool is_finished;
};

struct fs_growing *
fs_growing_new (const char *path, mode_t mode, struct mur_error **err)
{
    _cleanup_ (fs_growing_freep) struct fs_growing *g = x_new0 (struct fs_growing);
    const char *slash = strrchr (path, '/');
    _cleanup_free_ char *name = fs_temp_name (slash ? slash + 1 : path);
    g->path = x_strdup (path);
    g->temp = x_asprintf ("%.*s%s", slash ? (int)(slash + 1 - path) : 0, path, name);
    g->fd = open (g->temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (g->fd < 0 || ! fs_ensure_mode (g->fd, mode))
        return mur_fail_errno (err, E_IO_003, "cannot write %s", path), NULL;
    return steal_ptr (&g);
}

bool
fs_growing_append (struct fs_growing *g, const void *data, size_t len, struct mur_error **err)
{
    return fd_write_all (g->fd, data, len) ||
           mur_fail_errno (err, E_IO_003, "cannot write %s", g->path);
}

bool
fs_growing_finish (struct fs_growing *g, struct mur_error **err)
{
    g->is_finished = rename (g->temp, g->path) == 0;
    return g->is_finished || mur_fail_errno (err, E_IO_003, "cannot write %s", g->path);
}

void
fs_growing_free (struct fs_growing *g)
{
    if (! g)
        return;
    if (g->fd >= 0)
        close (g->fd);
    if (g->fd >= 0 && ! g->is_finished)
        unlink (g->temp);
    free (g->path);
    free (g->temp);
    free (g);
}
