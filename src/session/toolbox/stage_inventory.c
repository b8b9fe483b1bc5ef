/* SPDX-License-Identifier: Apache-2.0 */
#include "session/toolbox/stage_inventory.h"

#include "base/alloc.h"
#include "session/commands/shell.h"
#include "session/state/provided.h"
#include "session/state/session.h"

#include <string.h>

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
add_provided (struct session *s, const char *name, const char *description, const char *parameters)
{
    s->kit.tools[s->kit.tool_count++] =
        (struct tool_entry){ .name = name,
                             .description = description,
                             .parameters = parameters,
                             .required = required_of (s, parameters),
                             .is_provided = true };
}

bool
stage_inventory (struct session *s, struct mur_error **err)
{
    (void)err;
    free (s->kit.tools);
    s->kit.tool_count = 0;
    s->kit.tools = x_new_array (struct tool_entry, s->kit.artifact_count + s->kit.provided_count +
                                                       s->policy->commands.allow.len + 1);
    for (size_t i = 0; i < s->kit.artifact_count; i++) {
        struct staged_artifact *a = &s->kit.artifacts[i];
        if (! is_offered (a))
            continue;
        struct tool_entry *t = &s->kit.tools[s->kit.tool_count++];
        t->name = a->tool_name;
        t->description =
            a->origin == LOCK_RUNTIME
                ? arena_printf (s->arena, "[pulled by a running capsule: untrusted, not vetted] %s",
                                a->shown.description ? a->shown.description : "")
                : a->shown.description;
        t->parameters = a->shown.parameters;
        t->required = a->shown.required;
        t->is_schema_malformed = a->shown.is_schema_malformed;
        t->is_skill = a->role == ROLE_SKILL;
        t->artifact = a;
    }
    for (size_t i = 0; i < s->kit.provided_count; i++) {
        const struct provided_tool *tool = s->kit.provided[i];
        if (tool->exists (s))
            add_provided (s, tool->name, tool->description, provided_parameters (s, tool));
    }
    for (size_t i = 0; i < s->policy->commands.allow.len; i++) {
        const char *name = s->policy->commands.allow.items[i];
        if (shell_is_offered (s, name))
            add_provided (s, name, shell_description (s, name), shell_parameters (name));
    }
    qsort (s->kit.tools, s->kit.tool_count, sizeof (*s->kit.tools), tool_entry_compare);
    return true;
}
