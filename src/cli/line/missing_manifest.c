/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/line/missing_manifest.h"

#include "base/alloc.h"
#include "base/buf.h"

#include <dirent.h>
#include <unistd.h>

#define SHOWN_MAX 4    /* folders a hint names */
#define SEEN_MAX  2000 /* entries looked at, and no more */
#define DEPTH     2

static void
collect (const char *dir, const char *below, unsigned depth, unsigned *seen, struct strv *out)
{
    DIR *d = opendir (dir);
    for (struct dirent *e; d && *seen < SEEN_MAX && (e = readdir (d));) {
        ++*seen;
        if (e->d_name[0] == '.' || (e->d_type != DT_DIR && e->d_type != DT_UNKNOWN))
            continue;
        _cleanup_free_ char *folder = x_asprintf ("%s/%s", dir, e->d_name);
        _cleanup_free_ char *shown = x_asprintf ("%s%s", below, e->d_name);
        _cleanup_free_ char *manifest = x_asprintf ("%s/murmur.yaml", folder);
        _cleanup_free_ char *next = x_asprintf ("%s/", shown);
        if (access (manifest, F_OK) == 0)
            strv_push (out, shown);
        else if (depth > 1)
            collect (folder, next, depth - 1, seen, out);
    }
    if (d)
        closedir (d);
}

bool
missing_manifest_hint (const char *dir, const char *how, struct mur_error **err)
{
    _cleanup_strv_ struct strv found = { 0 };
    _cleanup_buf_ struct buf names = { 0 };
    unsigned seen = 0;
    collect (dir, "", DEPTH, &seen, &found);
    strv_sort (&found);
    for (size_t i = 0; i < found.len && i < SHOWN_MAX; i++)
        buf_printf (&names, "%s%s", i ? ", " : "", found.items[i]);
    if (found.len > SHOWN_MAX)
        buf_printf (&names, " and %zu more", found.len - SHOWN_MAX);
    if (found.len)
        return mur_hint (err, "%s; %s ha%s a murmur.yaml", how, names.data,
                         found.len == 1 ? "s" : "ve");
    return mur_hint (err, "%s; `mur new agent hello` creates one", how);
}
