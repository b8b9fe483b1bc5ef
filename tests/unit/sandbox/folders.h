/* SPDX-License-Identifier: Apache-2.0
 *
 * The folders of a session for the sandbox tests: made below a temporary one, not in /tmp, which
 * commands have of their own.
 */
#pragma once

#include "tests/unit/testing.h"

#include "sandbox/kernel/mount_plan.h"

#include <sys/stat.h>

_unused_ static char *
folder (struct arena *arena, const char *base, const char *name, struct mount_folder *f)
{
    struct stat st;
    char *path = arena_printf (arena, "%s/%s", base, name);
    assert_int_equal (mkdir (path, 0700), 0);
    assert_int_equal (stat (path, &st), 0);
    if (f)
        *f = (struct mount_folder){ path, st.st_dev, st.st_ino };
    return path;
}

/* <base> is a template of mkdtemp. */
_unused_ static bool
folders_make (struct arena *arena, char *base, struct mount_folders *f)
{
    if (! mkdtemp (base))
        return false;
    folder (arena, base, "work", &f->work);
    folder (arena, base, "temp", &f->temp);
    folder (arena, base, "home", &f->home);
    folder (arena, base, "runtime", &f->runtime);
    folder (arena, base, "records", &f->records);
    return true;
}
