/* SPDX-License-Identifier: Apache-2.0 */
#include "session/toolbox/stage_inventory.h"

#include "base/alloc.h"
#include "session/commands/shell.h"
#include "session/servers/stage_server.h"
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

static void
add_server_tools (struct session *s, struct staged_artifact *a)
{
    size_t count;
    const struct server_offer *offers = staged_server_offers (a->server, &count);
    for (size_t i = 0; i < count; i++)
        s->kit.tools[s->kit.tool_count++] =
            (struct tool_entry){ .name = offers[i].name,
                                 .description = offers[i].description,
                                 .parameters = offers[i].parameters,
                                 .output_schema = offers[i].output_schema,
                                 .required = offers[i].required,
                                 .artifact = a };
}

static size_t
count_server_tools (const struct session *s)
{
    size_t all = 0, count;
    for (size_t i = 0; i < s->kit.artifact_count; i++) {
        staged_server_offers (s->kit.artifacts[i].server, &count);
        all += count;
    }
    return all;
}

static const char *
whose (const struct tool_entry *t)
{
    return t->artifact ? t->artifact->full_name : "the runtime";
}

/* Names of artifacts are unique by themselves; those of a server's tools may meet any other. */
static bool
check_clashes (const struct session *s, struct mur_error **err)
{
    for (size_t i = 1; i < s->kit.tool_count; i++) {
        const struct tool_entry *a = &s->kit.tools[i - 1], *b = &s->kit.tools[i];
        bool is_server =
            (a->artifact && a->artifact->server) || (b->artifact && b->artifact->server);
        if (! is_server || strcmp (a->name, b->name) != 0)
            continue;
        mur_fail (err, E_MCP_007, "%s and %s both have a tool %s", whose (a), whose (b), a->name);
        return mur_hint (err, "set mcp.prefix or mcp.rename of one of them");
    }
    return true;
}

bool
stage_inventory (struct session *s, struct mur_error **err)
{
    free (s->kit.tools);
    s->kit.tool_count = 0;
    s->kit.tools = x_new_array (struct tool_entry, s->kit.artifact_count + s->kit.provided_count +
                                                       s->policy->commands.allow.len +
                                                       count_server_tools (s) + 1);
    for (size_t i = 0; i < s->kit.artifact_count; i++) {
        struct staged_artifact *a = &s->kit.artifacts[i];
        add_server_tools (s, a);
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
        t->output_schema = a->shown.output_schema;
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
    return check_clashes (s, err);
}
