/* SPDX-License-Identifier: Apache-2.0 */
#include "session/calls/read_only.h"
#include "fs/paths.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "session/commands/command_writes.h"
#include "session/commands/shell.h"
#include "session/state/command_line.h"
#include "session/state/session.h"

#include <string.h>

/* Keys in the form they are compared in: lower case, without '-' and '_'. */
static const char *const destination_keys[] = {
    "dest",    "destpath", "destination", "destinationpath", "targetpath", "outputpath", "outpath",
    "newpath", "to",       NULL
};
static const char *const path_keys[] = { "path", "filepath", "filename", "file", NULL };
static const char *const content_keys[] = { "content",     "contents", "text",   "data",
                                            "body",        "new",      "newstr", "newstring",
                                            "replacement", "patch",    "diff",   NULL };

static const char destination_format[] = "murmur-destination";
static const char opaque_format[] = "murmur-opaque";

void
read_only_hit_clear (struct read_only_hit *h)
{
    free (h->path);
    free (h->signal);
    *h = (struct read_only_hit){ 0 };
}

static bool
is_key (const char *key, const char *const *names)
{
    char plain[64];
    size_t len = 0;
    for (; *key; key++) {
        if (*key == '-' || *key == '_')
            continue;
        if (len + 1 == sizeof (plain))
            return false;
        plain[len++] = *key;
    }
    plain[len] = '\0';
    str_lower (plain);
    for (; *names; names++)
        if (strcmp (plain, *names) == 0)
            return true;
    return false;
}

/* --- one path --- */

char *
read_only_relative (const struct session *s, const char *base, const char *path)
{
    _cleanup_free_ char *joined =
        path[0] == '/' ? x_strdup (path) : x_asprintf ("%s/%s", base, path);
    _cleanup_free_ char *real = fs_canonical_path (joined, NULL);
    _cleanup_free_ char *root = fs_canonical_path (s->places.work_path, NULL);
    size_t len = root ? strlen (root) : 0;
    if (! real || ! root || strncmp (real, root, len) != 0 ||
        (real[len] != '/' && real[len] != '\0'))
        return NULL;
    return x_strdup (real[len] ? real + len + 1 : "");
}

/* True when a rule covers the path; <signal> is taken over. */
static bool
judge (const struct session *s, const struct tool_entry *tool, const char *path, char *signal,
       struct read_only_hit *hit)
{
    const struct staged_artifact *a = tool->artifact;
    _cleanup_free_ char *base = a && a->grant->scope_dir && a->grant->scope_dir[0]
                                    ? x_asprintf ("%s/%s", s->places.work_path, a->grant->scope_dir)
                                    : x_strdup (s->places.work_path);
    _cleanup_free_ char *relative = read_only_relative (s, base, path);
    for (size_t i = 0; relative && i < s->policy->files.read_only_paths.len; i++) {
        const char *why;
        _cleanup_free_ char *tree = subpath_lower (s->policy->files.read_only_paths.items[i], &why);
        _cleanup_free_ char *real = tree ? read_only_relative (s, s->places.work_path, tree) : NULL;
        if ((tree && subpath_is_within (relative, tree)) ||
            (real && subpath_is_within (relative, real))) {
            hit->rule = s->policy->files.read_only_paths.items[i];
            hit->path = steal_ptr (&relative);
            hit->signal = signal;
            return true;
        }
    }
    free (signal);
    return false;
}

/* --- the input --- */

static const char *
format_of (const json_t *schema)
{
    const char *format = json_get_string (schema, "format");
    return format ? format : "";
}

static const char *
content_key_of (const json_t *object)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)object, key,
                         value) if (is_key (key, content_keys)) return key;
    return NULL;
}

static bool walk (const struct session *s, const struct tool_entry *tool, const json_t *value,
                  const json_t *schema, struct read_only_hit *hit);

static bool
judge_member (const struct session *s, const struct tool_entry *tool, const char *key,
              const char *text, const char *content_key, const json_t *schema,
              struct read_only_hit *hit)
{
    char *signal = NULL;
    if (strcmp (format_of (schema), destination_format) == 0)
        signal = x_asprintf ("destination '%s' declared by the tool's schema", key);
    else if (is_key (key, destination_keys))
        signal = x_asprintf ("destination key '%s' in the tool input", key);
    else if (content_key && is_key (key, path_keys))
        signal = x_asprintf ("tool input pairs '%s' with '%s'", key, content_key);
    return signal && judge (s, tool, text, signal, hit);
}

static bool
walk_object (const struct session *s, const struct tool_entry *tool, const json_t *object,
             const json_t *schema, struct read_only_hit *hit)
{
    const json_t *properties = json_object_get (schema, "properties");
    const char *content_key = content_key_of (object), *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)object, key, value)
    {
        const json_t *member = json_object_get (properties, key);
        if (json_is_string (value)
                ? judge_member (s, tool, key, json_string_value (value), content_key, member, hit)
                : walk (s, tool, value, member, hit))
            return true;
    }
    return false;
}

static bool
walk (const struct session *s, const struct tool_entry *tool, const json_t *value,
      const json_t *schema, struct read_only_hit *hit)
{
    if (strcmp (format_of (schema), opaque_format) == 0)
        return false;
    if (json_is_object (value))
        return walk_object (s, tool, value, schema, hit);
    const json_t *items = json_object_get (schema, "items");
    for (size_t i = 0; i < json_array_size (value); i++) {
        const json_t *item = json_array_get (value, i);
        if (json_is_string (item)
                ? strcmp (format_of (items), destination_format) == 0 &&
                      judge (s, tool, json_string_value (item),
                             x_strdup ("destination declared by the tool's schema"), hit)
                : walk (s, tool, item, items, hit))
            return true;
    }
    return false;
}

/* --- commands --- */

struct command_judge {
    const struct session *session;
    const struct tool_entry *tool;
    struct read_only_hit *hit;
};

static bool
judge_write (void *ctx, const char *path, const char *signal)
{
    const struct command_judge *j = ctx;
    return *path && judge (j->session, j->tool, path, x_strdup (signal), j->hit);
}

static bool
command_hits (const struct session *s, const struct tool_entry *tool, const json_t *input,
              struct read_only_hit *hit)
{
    struct command_judge j = { s, tool, hit };
    const char *command = json_get_string (input, "command");
    if (! command)
        return false;
    return command_line_is_interpreter (tool->name)
               ? command_writes_of_script (command, judge_write, &j)
               : command_writes_of_program (tool->name, command, judge_write, &j);
}

bool
read_only_hits (const struct session *s, const struct tool_entry *tool, const json_t *input,
                struct read_only_hit *hit)
{
    if (! s->policy->files.read_only_paths.len || ! tool || tool->is_skill)
        return false;
    if (! tool->artifact && shell_is_offered (s, tool->name))
        return command_hits (s, tool, input, hit);
    if (tool->is_provided)
        return false;
    _cleanup_json_ json_t *schema = json_loads (tool->parameters, 0, NULL);
    return walk (s, tool, input, schema, hit);
}

void
read_only_warn (const struct session *s)
{
    for (size_t i = 0; s->policy->files.read_only_paths.len && i < s->kit.tool_count; i++) {
        const struct tool_entry *t = &s->kit.tools[i];
        if (! t->is_skill && ! t->is_provided && ! strstr (t->parameters, destination_format))
            diag_warn (
                DIAG_RUNTIME, W_SEC_018,
                "the schema of tool %s names no destination: read_only is judged by the names "
                "of its input keys",
                t->name);
    }
}
