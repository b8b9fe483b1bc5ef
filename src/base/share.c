/* SPDX-License-Identifier: Apache-2.0 */
#include "base/share.h"

#include "base/alloc.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* Relative to the folder of the executable. */
static const char *const places[] = {
    "../share/murmur", /* <prefix>/bin/mur */
    ".",               /* build/mur */
    "../..",           /* build/src/cli/mur, build/tests/unit/<folder>/<program> less one level */
    "../../..",
};

char *
share_program (void)
{
    char path[PATH_MAX];
    ssize_t len = readlink ("/proc/self/exe", path, sizeof path - 1);
    if (len > 0)
        return x_strndup (path, (size_t)len);
    const char *started = (const char *)getauxval (AT_EXECFN);
    return started ? realpath (started, NULL) : NULL;
}

char *
share_path (const char *name)
{
    _cleanup_free_ char *folder = share_program ();
    char *slash = folder ? strrchr (folder, '/') : NULL;
    if (! slash)
        return NULL;
    *slash = '\0';
    for (size_t i = 0; i < ARRAY_LEN (places); i++) {
        _cleanup_free_ char *candidate = x_asprintf ("%s/%s/%s", folder, places[i], name);
        char *resolved = realpath (candidate, NULL);
        if (resolved)
            return resolved;
    }
    return NULL;
}
