/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/deploy/rendered.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "fs/paths.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

void
rendered_note_tag (const char *image)
{
    if (image && ! strstr (image, "@sha256:"))
        diag_note ("%s is not named by digest: what runs is what the registry gives that day",
                   image);
}

void
rendered_join (const struct deploy_files *files, struct buf *out)
{
    for (size_t i = 0; i < files->len; i++) {
        if (files->len > 1)
            buf_printf (out, "%s# %s\n", str_ends (files->items[i].name, ".yaml") ? "---\n" : "",
                        files->items[i].name);
        buf_append (out, files->items[i].text.data, files->items[i].text.len);
    }
}

bool
rendered_write (const struct deploy_files *files, const char *dir, struct mur_error **err)
{
    _cleanup_buf_ struct buf all = { 0 };
    if (! dir) {
        rendered_join (files, &all);
        out_write (all.data, all.len);
        return true;
    }
    if (mkdir (dir, 0755) < 0 && errno != EEXIST)
        return mur_fail_errno (err, E_IO_003, "cannot make %s", dir);
    for (size_t i = 0; i < files->len; i++) {
        _cleanup_free_ char *path = x_asprintf ("%s/%s", dir, files->items[i].name);
        if (! fs_replace_path (path, files->items[i].text.data, files->items[i].text.len, 0644,
                               false, err))
            return false;
        out_printf ("%s\n", path);
    }
    return true;
}
