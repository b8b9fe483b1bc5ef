/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/program.h"

#include "base/alloc.h"

#include <dlfcn.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* From the folder the library lies in: a build tree, <prefix>/lib, <prefix>/lib/<multiarch>. */
static const char *const beside[] = { "mur", "../bin/mur", "../../bin/mur" };

static bool
can_run (const char *path)
{
    return access (path, X_OK) == 0;
}

static char *
find_beside (void)
{
    Dl_info info;
    if (! dladdr (beside, &info))
        return NULL;
    _cleanup_free_ char *self = realpath (info.dli_fname, NULL);
    const char *folder = self ? dirname (self) : NULL;
    for (size_t i = 0; folder && i < ARRAY_LEN (beside); i++) {
        char *path = x_asprintf ("%s/%s", folder, beside[i]);
        if (can_run (path))
            return path;
        free (path);
    }
    return NULL;
}

static char *
find_on_path (void)
{
    const char *list = getenv ("PATH");
    _cleanup_free_ char *copy = x_strdup (list ? list : "");
    char *rest = copy;
    for (char *folder; (folder = strsep (&rest, ":"));) {
        if (*folder != '/')
            continue;
        char *path = x_asprintf ("%s/mur", folder);
        if (can_run (path))
            return path;
        free (path);
    }
    return NULL;
}

char *
program_find (const char *named, struct mur_error **err)
{
    const char *chosen = named ? named : getenv ("MURMUR_MUR_BINARY");
    if (chosen && *chosen) {
        if (can_run (chosen))
            return x_strdup (chosen);
        mur_fail_errno (err, E_IO_003, "cannot run %s", chosen);
        return NULL;
    }
    char *path = find_beside ();
    if (! path)
        path = find_on_path ();
    if (! path) {
        mur_fail (err, E_IO_003, "there is no program mur beside this library and none on PATH");
        mur_hint (err, "install mur, or name it: mur_request_set_program, $MURMUR_MUR_BINARY");
    }
    return path;
}
