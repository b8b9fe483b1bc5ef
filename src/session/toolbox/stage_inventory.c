/* SPDX-License-Identifier: Apache-2.0
 *
 * What the model may call: the staged tools and skills and what the runtime provides, sorted by
 * name (spec/session.md 5.4).
 *
 * Callers: stage.c, dispatch and the tool array.
 */
#include "base/alloc.h"
#include "session/commands/shell.h"
#include "session/state/provided.h"
#include "session/state/session.h"

#include <string.h>

static int
compare_tools (const void *a, const void *b)
{
    return strcmp (((const struct tool_entry *)a)->name, ((const struct tool_entry *)b)->name);
}

static bool
is_offered (const struct staged_artifact *a)
{
    return (a->role == ROLE_TOOL || a->role == ROLE_SKILL) && ! a->is_prompt && ! a->is_removed;
}

/* The names a schema of the runtime's own requires; in the session's arena. */
static struct strv
required_of (struct session *s, const char *parameters)
{
    _cleanup_json_ json_t *schema = json_loads (parameters, 0, NULL);
    const json_t *list = json_object_get (schema, "required");
    struct strv names = { .len = json_array_size (list) };
    names.items = arena_new_array (s->arena, char *, names.len + 1);
    for (size_t i = 0; i < names.len; i++)
        names.items[i] = arena_strdup (s->arena, json_string_value (json_array_get (list, i)));
    return names;
}

static void
add_builtin (struct session *s, const char *name, const char *description, const char *parameters)
{
    s->tools[s->tool_count++] = (struct tool_entry){ .name = name,
                                                     .description = description,
                                                     .parameters = parameters,
                                                     .required = required_of (s, parameters),
                                                     .is_builtin = true };
}

bool
stage_inventory (struct session *s, struct mur_error **err)
{
    (void)err;
    free (s->tools);
    s->tool_count = 0;
    s->tools = x_new_array (struct tool_entry, s->artifact_count + builtin_tool_count +
                                                   s->policy->shell_allow.len + 1);
    for (size_t i = 0; i < s->artifact_count; i++) {
        struct staged_artifact *a = &s->artifacts[i];
        if (! is_offered (a))
            continue;
        struct tool_entry *t = &s->tools[s->tool_count++];
        t->name = a->tool_name;
        t->description =
            a->origin == LOCK_RUNTIME
                ? arena_printf (s->arena, "[pulled by a running capsule: untrusted, not vetted] %s",
                                a->description ? a->description : "")
                : a->description;
        t->parameters = a->parameters;
        t->required = a->required;
        t->is_schema_malformed = a->is_schema_malformed;
        t->is_skill = a->role == ROLE_SKILL;
        t->artifact = a;
    }
    for (size_t i = 0; i < builtin_tool_count; i++)
        if (builtin_tools[i].exists (s))
            add_builtin (s, builtin_tools[i].name, builtin_tools[i].description,
                         builtin_tools[i].parameters_of ? builtin_tools[i].parameters_of (s)
                                                        : builtin_tools[i].parameters);
    for (size_t i = 0; i < s->policy->shell_allow.len; i++) {
        const char *name = s->policy->shell_allow.items[i];
        if (shell_is_offered (s, name))
            add_builtin (s, name, shell_description (s, name), shell_parameters);
    }
    qsort (s->tools, s->tool_count, sizeof (*s->tools), compare_tools);
    return true;
}

const struct tool_entry *
session_tool (const struct session *s, const char *name)
{
    struct tool_entry key = { .name = name };
    return bsearch (&key, s->tools, s->tool_count, sizeof (key), compare_tools);
}

struct staged_artifact *
session_artifact (const struct session *s, const char *tool_name)
{
    for (size_t i = 0; i < s->artifact_count; i++)
        if (! s->artifacts[i].is_removed && strcmp (s->artifacts[i].tool_name, tool_name) == 0)
            return &s->artifacts[i];
    return NULL;
}

bool
session_has_removed (const struct session *s, const char *tool_name)
{
    for (size_t i = 0; i < s->artifact_count; i++)
        if (s->artifacts[i].is_removed && strcmp (s->artifacts[i].tool_name, tool_name) == 0)
            return ! session_artifact (s, tool_name);
    return false;
}
