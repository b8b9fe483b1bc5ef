/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/programs/path_lists.h"

#include "fs/paths.h"
#include "fs/root.h"

bool
path_is_below_any (const char *path, const char *const *roots)
{
    for (size_t i = 0; roots && roots[i]; i++)
        if (fs_path_is_within (path, roots[i]))
            return true;
    return false;
}

void
strv_push_once (struct strv *v, const char *s)
{
    if (! strv_contains (v, s))
        strv_push (v, s);
}
