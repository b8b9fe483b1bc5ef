/* SPDX-License-Identifier: Apache-2.0
 *
 * What every kind of source needs: names as people would say them, and the files package managers
 * write.
 */
#include "base/alloc.h"
#include "cli/mcp/source_internal.h"
#include "fs/paths.h"

#include <ctype.h>
#include <string.h>

#define JSON_MAX ((size_t)64 << 20)

char *
source_name_of (const char *package)
{
    static const char *const beginnings[] = { "mcp-server-", "server-", "mcp-" };
    static const char *const ends[] = { "-mcp-server", "-mcp", "-server" };
    const char *slash = strrchr (package, '/');
    char *name = x_strdup (slash ? slash + 1 : package);
    str_lower (name);
    for (char *c = name; *c; c++)
        if (! isalnum ((unsigned char)*c))
            *c = '-';
    for (size_t i = 0; i < ARRAY_LEN (beginnings); i++)
        if (str_starts (name, beginnings[i]) && name[strlen (beginnings[i])]) {
            memmove (name, name + strlen (beginnings[i]),
                     strlen (name) - strlen (beginnings[i]) + 1);
            break;
        }
    for (size_t i = 0; i < ARRAY_LEN (ends); i++)
        if (str_ends (name, ends[i]) && strlen (name) > strlen (ends[i])) {
            name[strlen (name) - strlen (ends[i])] = '\0';
            break;
        }
    /* "@playwright/mcp" is playwright, "@sentry/mcp-server" sentry. */
    bool says_nothing = str_eq (name, "mcp") || str_eq (name, "server");
    if (says_nothing && package[0] == '@' && slash) {
        free (name);
        name = x_strndup (package + 1, (size_t)(slash - package) - 1);
    }
    return name;
}

void
source_split_version (const char *text, char **name, char **version)
{
    const char *at = strrchr (text, '@');
    bool has_version = at && at != text && at[1];
    *name = has_version ? x_strndup (text, (size_t)(at - text)) : x_strdup (text);
    *version = has_version ? x_strdup (at + 1) : NULL;
}

json_t *
source_read_json (const char *path, struct mur_error **err)
{
    _cleanup_buf_ struct buf text = { 0 };
    if (! fs_read_regular (path, JSON_MAX, &text, err))
        return NULL;
    return json_parse (text.data ? text.data : "", text.len, path, E_IO_003, err);
}
