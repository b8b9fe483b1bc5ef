/* SPDX-License-Identifier: Apache-2.0 */
#include "session/state/inventory.h"

#include "session/state/session.h"

#include <string.h>

int
tool_entry_compare (const void *a, const void *b)
{
    return strcmp (((const struct tool_entry *)a)->name, ((const struct tool_entry *)b)->name);
}

const struct tool_entry *
session_tool (const struct session *s, const char *name)
{
    struct tool_entry key = { .name = name };
    if (s->kit.tool_count == 0)
        return NULL;
    return bsearch (&key, s->kit.tools, s->kit.tool_count, sizeof (key), tool_entry_compare);
}

struct staged_artifact *
session_artifact (const struct session *s, const char *tool_name)
{
    for (size_t i = 0; i < s->kit.artifact_count; i++)
        if (! s->kit.artifacts[i].is_removed &&
            strcmp (s->kit.artifacts[i].tool_name, tool_name) == 0)
            return &s->kit.artifacts[i];
    return NULL;
}

struct staged_artifact *
session_artifact_full (const struct session *s, const char *full_name)
{
    for (size_t i = 0; i < s->kit.artifact_count; i++)
        if (str_eq (s->kit.artifacts[i].full_name, full_name))
            return &s->kit.artifacts[i];
    return NULL;
}

bool
session_has_removed (const struct session *s, const char *tool_name)
{
    for (size_t i = 0; i < s->kit.artifact_count; i++)
        if (s->kit.artifacts[i].is_removed &&
            strcmp (s->kit.artifacts[i].tool_name, tool_name) == 0)
            return ! session_artifact (s, tool_name);
    return false;
}

bool
session_has_compaction_hook (const struct session *s)
{
    for (size_t i = 0; i < s->kit.artifact_count; i++) {
        const struct staged_artifact *a = &s->kit.artifacts[i];
        if (a->role == ROLE_HOOK && a->contract.mode == HOOK_BLOCKING &&
            (a->contract.binding == BIND_ALL || a->contract.binding == BIND_ON_COMPACTION))
            return true;
    }
    return false;
}
