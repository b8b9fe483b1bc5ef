/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/programs/package_version.h"

#include "base/alloc.h"
#include "base/json.h"
#include "fs/paths.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define PACKAGE_MAX (1 << 20)

bool
version_line_has_one (const char *line)
{
    for (const char *at = line; *at; at += strcspn (at, " \t"), at += strspn (at, " \t")) {
        const char *digits = at + (*at == 'v');
        size_t len = strspn (digits, "0123456789");
        if (len && digits[len] == '.' && isdigit ((unsigned char)digits[len + 1]))
            return true;
    }
    return false;
}

/* ".../node_modules/NAME" or ".../node_modules/@SCOPE/NAME" around a file. Owned, or NULL. */
static char *
package_around (const char *file)
{
    static const char mark[] = "/node_modules/";
    const char *last = NULL;
    for (const char *at = file; (at = strstr (at, mark)); at++)
        last = at;
    const char *end = last ? strchr (last + strlen (mark), '/') : NULL;
    if (end && last[strlen (mark)] == '@')
        end = strchr (end + 1, '/');
    return end ? x_strndup (file, (size_t)(end - file)) : NULL;
}

char *
package_version_of (const char *program)
{
    char real[PATH_MAX];
    _cleanup_free_ char *package = realpath (program, real) ? package_around (real) : NULL;
    if (! package)
        return NULL;
    _cleanup_free_ char *path = x_asprintf ("%s/package.json", package);
    _cleanup_buf_ struct buf text = { 0 };
    if (! fs_read_regular (path, PACKAGE_MAX, &text, NULL))
        return NULL;
    _cleanup_json_ json_t *root = json_loadb (text.data ? text.data : "", text.len, 0, NULL);
    const char *version = json_get_string (root, "version");
    return version && version_line_has_one (version) ? x_strdup (version) : NULL;
}
