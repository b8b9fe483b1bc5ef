/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/line/missing_programs.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "manifest/text/suggest.h"
#include "sandbox/programs/exec_allowlist.h"

#include <dirent.h>
#include <string.h>

/* The nearest name of a program on PATH, or NULL. Owned. */
static char *
nearest (const char *typed, const char *path)
{
    _cleanup_free_ char *dirs = x_strdup (path);
    char *rest = dirs, *found = NULL;
    size_t distance = 0;
    for (char *name; (name = strsep (&rest, ":"));) {
        _cleanup_closedir_ DIR *dir = name[0] == '/' ? opendir (name) : NULL;
        for (const struct dirent *entry; dir && (entry = readdir (dir));) {
            struct suggestion near = { 0 };
            if (entry->d_name[0] != '.')
                suggestion_offer (&near, typed, entry->d_name);
            if (! near.word || (found && near.distance >= distance))
                continue;
            free (found);
            found = x_strdup (near.word);
            distance = near.distance;
        }
    }
    return found;
}

void
missing_programs_note (const struct policy *p)
{
    const char *path = getenv ("PATH");
    for (size_t i = 0; path && p->commands.shell && i < p->commands.allow.len; i++) {
        const char *name = p->commands.allow.items[i];
        _cleanup_free_ char *there = strchr (name, '/') ? NULL : exec_find_on_path (name, path);
        if (there || strchr (name, '/'))
            continue;
        _cleanup_free_ char *near = nearest (name, path);
        diag_note ("capabilities.shell.allow: %s is not found on this machine%s%s%s", name,
                   near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    }
}
