/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/unpacked.h"

#include "base/alloc.h"
#include "fs/paths.h"
#include "replay/bundle/bundle.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool
unpacked_open (const char *bundle, struct unpacked *out, struct mur_error **err)
{
    const char *temp = getenv ("TMPDIR");
    _cleanup_free_ char *name =
        x_asprintf ("%s/murmur-bundle-XXXXXX", temp && temp[0] == '/' ? temp : "/tmp");
    if (! mkdtemp (name))
        return mur_fail_errno (err, E_IO_003, "cannot make a folder for the bundle");
    out->dir = fs_canonical_path (name, err);
    if (out->dir && bundle_unpack (bundle, out->dir, &out->is_strict, err))
        return true;
    unpacked_close (out);
    return false;
}

void
unpacked_close (struct unpacked *u)
{
    if (u->dir)
        fs_remove_tree_at (AT_FDCWD, u->dir, NULL);
    free (u->dir);
    u->dir = NULL;
}
