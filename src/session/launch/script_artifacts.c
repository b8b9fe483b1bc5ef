/* SPDX-License-Identifier: Apache-2.0 */
#include "session/launch/script_artifacts.h"
#include "engine/guest.h"

#include "base/alloc.h"
#include "base/json.h"
#include "manifest/text/yaml.h"
#include "manifest/text/yaml_tree.h"
#include "session/commands/shell.h"
#include "session/launch/launched.h"
#include "session/state/session.h"
#include "session/toolbox/pull.h"
#include "session/toolbox/pull_list.h"

#include <string.h>

#define COMMAND_VERSION "0.0.0"

static struct artifact_summary
summary_of (const struct staged_artifact *a)
{
    return (struct artifact_summary){
        a->full_name, a->version, a->role == ROLE_TOOL && a->resolved && a->resolved->is_native
    };
}

/* A command of capabilities.shell.allow stands beside the artifacts, unless a tool shadows it. */
static struct artifact_summary
command_summary (const char *name)
{
    return (struct artifact_summary){ name, COMMAND_VERSION, true };
}

static void
list_artifacts (void *ctx, struct arena *arena, const struct artifact_summary **items,
                size_t *count)
{
    struct session *s = ctx;
    const struct str_list *commands = &s->policy->commands.allow;
    struct artifact_summary *list =
        arena_new_array (arena, struct artifact_summary, s->kit.artifact_count + commands->len + 1);
    *count = 0;
    for (size_t i = 0; i < s->kit.artifact_count; i++)
        if (! s->kit.artifacts[i].is_removed &&
            (s->kit.artifacts[i].role == ROLE_TOOL || s->kit.artifacts[i].role == ROLE_SKILL))
            list[(*count)++] = summary_of (&s->kit.artifacts[i]);
    for (size_t i = 0; i < commands->len; i++)
        if (shell_is_offered (s, commands->items[i]))
            list[(*count)++] = command_summary (commands->items[i]);
    *items = list;
}

/* A schema as compact JSON: a text that holds JSON, or YAML. NULL without one. In the arena. */
static const char *
schema_text (const struct yaml_node *node, struct arena *arena)
{
    if (! node)
        return NULL;
    const char *text = node->kind == YAML_STRING ? yaml_text (node) : NULL;
    _cleanup_json_ json_t *value =
        text ? json_parse (text, strlen (text), "schema", E_MAN_003, NULL) : NULL;
    if (! value)
        value = yaml_to_json (node, E_MAN_003, NULL);
    if (! value)
        return NULL;
    _cleanup_free_ char *compact = json_text (value, JSON_TEXT_ORDERED);
    return arena_strdup (arena, compact);
}

static void
take_tags (const struct yaml_node *tags, struct arena *arena, struct artifact_info *info)
{
    if (! tags || tags->kind != YAML_LIST)
        return;
    const char **list = arena_new_array (arena, const char *, tags->len + 1);
    for (uint32_t i = 0; i < tags->len; i++)
        if (yaml_text (tags->items[i]))
            list[info->tag_count++] = arena_strdup (arena, yaml_text (tags->items[i]));
    info->tags = list;
}

/* The packed manifest's own words. */
static void
fill_info (const struct staged_artifact *a, struct arena *arena, struct artifact_info *info)
{
    info->summary = summary_of (a);
    info->description = a->shown.description ? a->shown.description : "";
    struct arena *own = arena_new ();
    const struct yaml_node *root =
        yaml_parse (own, a->manifest_text, a->manifest_len, "murmur.yaml", E_MAN_002, NULL);
    take_tags (yaml_get (root, "tags"), arena, info);
    info->input_schema = schema_text (yaml_get (root, "input_schema"), arena);
    info->output_schema = schema_text (yaml_get (root, "output_schema"), arena);
    arena_free (own);
}

static bool
describe_artifact (void *ctx, const char *name, struct arena *arena, struct artifact_info *info,
                   const char **refusal)
{
    struct session *s = ctx;
    for (size_t i = 0; i < s->kit.artifact_count; i++) {
        const struct staged_artifact *a = &s->kit.artifacts[i];
        if (strcmp (a->full_name, name) != 0 || a->is_removed || a->role == ROLE_DRIVER ||
            a->role == ROLE_HOOK)
            continue;
        fill_info (a, arena, info);
        return true;
    }
    if (shell_is_offered (s, name)) {
        info->summary = command_summary (arena_strdup (arena, name));
        info->description = shell_description (s, name);
        info->input_schema = shell_parameters (name);
        return true;
    }
    _cleanup_free_ char *why = NULL;
    *refusal = pull_check_name (name, &why)
                   ? arena_printf (arena, "not-found: %s is not installed in this session", name)
                   : arena_strdup (arena, why);
    return false;
}

/* What could be pulled: a pattern ending in '*', or any part of a name. */
static bool
search_artifacts (void *ctx, const char *query, struct arena *arena,
                  const struct artifact_summary **items, size_t *count, const char **refusal)
{
    bool is_pattern = str_ends (query, "*");
    _cleanup_matches_ struct pull_matches found = { 0 };
    _cleanup_free_ char *why = NULL;
    if (! pull_find (ctx, is_pattern ? query : "*", guest_current_cancel (), &found, &why)) {
        *refusal = arena_strdup (arena, why);
        return false;
    }
    struct artifact_summary *list = arena_new_array (arena, struct artifact_summary, found.len + 1);
    *count = 0;
    for (size_t i = 0; i < found.len; i++) {
        const struct pull_match *m = &found.items[i];
        if (m->newest_fitting && (is_pattern || strcasestr (m->name, query)))
            list[(*count)++] =
                (struct artifact_summary){ arena_strdup (arena, m->name),
                                           arena_strdup (arena, m->newest_fitting), m->is_native };
    }
    *items = list;
    return true;
}

/* What was pulled is recorded once the run is over. */
#define PULLS_MAX 256

static struct pulled *
next_pull (struct session *s)
{
    if (! s->rooms.launched->script_pulls)
        s->rooms.launched->script_pulls =
            arena_alloc (s->arena, PULLS_MAX * sizeof (struct pulled));
    return s->rooms.launched->script_pull_count < PULLS_MAX
               ? &s->rooms.launched->script_pulls[s->rooms.launched->script_pull_count]
               : NULL;
}

static bool
pull_one (void *ctx, const char *name, const char *version, struct arena *arena,
          struct artifact_summary *pulled, const char **refusal)
{
    struct session *s = ctx;
    struct pulled *p = next_pull (s);
    _cleanup_free_ char *why = NULL;
    if (! p) {
        *refusal = "not-fetched: this session has pulled as much as it may";
        return false;
    }
    if (! pull_artifact (s, name, version, guest_current_cancel (), p, &why)) {
        pulled_clear (p);
        *refusal = arena_strdup (arena, why);
        return false;
    }
    *pulled = summary_of (p->artifact);
    if (p->is_new)
        s->rooms.launched->script_pull_count++;
    else
        pulled_clear (p);
    return true;
}

static bool
remove_one (void *ctx, const char *name, struct arena *arena, bool *was_removed,
            const char **refusal)
{
    _cleanup_free_ char *why = NULL;
    if (pull_remove (ctx, name, was_removed, &why))
        return true;
    *refusal = arena_strdup (arena, why);
    return false;
}

void
script_artifacts_record (struct session *s)
{
    _cleanup_error_ struct mur_error *err = NULL;
    if (s->rooms.launched->script_pull_count && ! s->trace)
        s->trace = trace_writer_new (s->places.records, s->id.text, s->redactor, &err);
    for (size_t i = 0; i < s->rooms.launched->script_pull_count; i++) {
        if (s->trace)
            pull_record (s, &s->rooms.launched->script_pulls[i]);
        pulled_clear (&s->rooms.launched->script_pulls[i]);
    }
    s->rooms.launched->script_pull_count = 0;
}

static void
put_patterns (struct buf *b, const char *tier, const struct str_list *patterns)
{
    for (size_t i = 0; i < patterns->len; i++)
        buf_printf (b, "%s%s %s", b->len ? ", " : "", tier, patterns->items[i]);
}

static bool
diagnose (void *ctx, struct arena *arena, struct artifact_state *state, const char **refusal)
{
    struct session *s = ctx;
    (void)refusal;
    _cleanup_buf_ struct buf grant = { 0 };
    put_patterns (&grant, "skill", &s->policy->install.skill);
    put_patterns (&grant, "tool", &s->policy->install.tool);
    list_artifacts (ctx, arena, &state->installed, &state->installed_count);
    state->capsule_id = s->id.text;
    state->capabilities = arena_printf (arena, "install: %s", grant.len ? grant.data : "none");
    return true;
}

struct artifact_manager_host
script_artifacts (struct session *s)
{
    return (struct artifact_manager_host){
        s, list_artifacts, describe_artifact, search_artifacts, pull_one, remove_one, diagnose
    };
}
