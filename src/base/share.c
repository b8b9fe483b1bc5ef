/* SPDX-License-Identifier: Apache-2.0 */
#include "base/share.h"

#include "base/alloc.h"

#include <limits.h>
#include <string.h>

/* Relative to the folder of the executable. */
static const char *const places[] = {
    "../share/murmur", /* <prefix>/bin/mur */
    ".",               /* build/mur */
    "../..",           /* build/src/cli/mur, build/tests/unit/<folder>/<program> less one level */
    "../../..",
};

char *
share_path (const char *name)
{
    char folder[PATH_MAX];
    ssize_t len = readlink ("/proc/self/exe", folder, sizeof folder - 1);
    if (len <= 0)
        return NULL;
    folder[len] = '\0';
    char *slash = strrchr (folder, '/');
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
