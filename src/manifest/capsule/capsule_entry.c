/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/capsule/capsule_entry.h"

#include "base/alloc.h"

#include <string.h>

static const char *const role_names[ARTIFACT_ROLE_COUNT] = { "tool", "driver", "hook", "skill",
                                                             "mcp" };

const char *
artifact_role_name (enum artifact_role role)
{
    return role_names[role];
}

const struct artifact_entry *
capsule_manifest_artifact (const struct capsule_manifest *m, const char *name)
{
    size_t low = 0, high = name ? m->artifacts.len : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp (m->by_name[middle]->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool is_found = name && low < m->artifacts.len && strcmp (m->by_name[low]->name, name) == 0;
    return is_found ? m->by_name[low] : NULL;
}

static const char *
renamed (const struct mcp_block *m, const char *tool)
{
    for (size_t i = 0; m && i < m->rename.len; i++)
        if (strcmp (m->rename.items[i].name, tool) == 0)
            return m->rename.items[i].value;
    return tool;
}

/* Providers take letters, digits, _ and -. */
char *
mcp_offered_name (const struct mcp_block *m, const char *name, const char *tool)
{
    const char *prefix = m && m->prefix ? m->prefix : name;
    char *offered = x_asprintf ("%s%s%s", prefix, *prefix ? "_" : "", renamed (m, tool));
    for (char *c = offered; *c; c++)
        if (*c == '.' || *c == '/')
            *c = '_';
    return offered;
}
