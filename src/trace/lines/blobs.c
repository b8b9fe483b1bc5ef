/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/lines/blobs.h"

bool
trace_blob_store (struct fs_root *records, const char *sha256, const void *data, size_t len,
                  struct mur_error **err)
{
    char path[80];
    snprintf (path, sizeof (path), "blobs/%s", sha256);
    if (! fs_make_dirs (records, "blobs", 0700, true, err))
        return false;
    struct stat st;
    if (fs_exists (records, path, &st) && S_ISREG (st.st_mode))
        return true;
    return fs_write (records, path, data, len, 0666, false, err);
}
