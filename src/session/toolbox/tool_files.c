/* SPDX-License-Identifier: Apache-2.0 */
#include "session/toolbox/tool_files.h"

#include "base/alloc.h"
#include "manifest/text/yaml.h"
#include "manifest/text/yaml_write.h"
#include "session/commands/native.h"
#include "session/commands/shell.h"
#include "session/state/provided.h"
#include "session/state/session.h"

#include <string.h>

static bool
write_tool_file (struct session *s, const char *tool, const char *file, const void *data,
                 size_t len, struct mur_error **err)
{
    _cleanup_free_ char *dir = x_asprintf ("tools/%s", tool);
    _cleanup_free_ char *path = x_asprintf ("%s/%s", dir, file);
    return fs_make_dirs (s->places.runtime, dir, 0777, false, err) &&
           fs_create (s->places.runtime, path, data, len, 0666, false, err);
}

static bool
write_provided (struct session *s, const char *name, const char *description,
                const char *parameters, struct mur_error **err)
{
    struct yaml_writer w;
    yaml_writer_init (&w);
    yaml_add_text (&w, "name", name);
    yaml_add_text (&w, "version", "0.0.0");
    yaml_add_text (&w, "runtime", "tool");
    yaml_add_text (&w, "implementation", "native");
    yaml_add_text (&w, "description", description);
    yaml_add_text (&w, "input_schema", parameters);
    _cleanup_free_ char *text = yaml_writer_finish (&w);
    return write_tool_file (s, name, "murmur.yaml", text, strlen (text), err);
}

bool
stage_artifact_files (struct session *s, struct staged_artifact *a, struct mur_error **err)
{
    return write_tool_file (s, a->tool_name, "murmur.yaml", a->manifest_text, a->manifest_len,
                            err) &&
           (a->role != ROLE_SKILL || write_tool_file (s, a->tool_name, "skill.md",
                                                      a->skill_text.data, a->skill_text.len, err));
}

bool
stage_tool_files (struct session *s, struct mur_error **err)
{
    /* A package of a server is no tool: nobody looks for it there. */
    for (size_t i = 0; i < s->kit.artifact_count; i++)
        if (s->kit.artifacts[i].role != ROLE_MCP &&
            ! stage_artifact_files (s, &s->kit.artifacts[i], err))
            return false;
    if (! stage_native_tools (s, err))
        return false;
    for (size_t i = 0; i < s->policy->commands.allow.len; i++) {
        const char *name = s->policy->commands.allow.items[i];
        if (shell_is_offered (s, name) &&
            ! write_provided (s, name, shell_description (s, name), shell_parameters (name), err))
            return false;
    }
    for (size_t i = 0; i < s->kit.provided_count; i++) {
        const struct provided_tool *tool = s->kit.provided[i];
        if (tool->exists (s) &&
            ! write_provided (s, tool->name, tool->description, provided_parameters (s, tool), err))
            return false;
    }
    return true;
}
