/* SPDX-License-Identifier: Apache-2.0
 *
 * Tool manifests an on-stage hook writes: what the model is told of a shell command
 * (docs/spec/session.md 9.2).
 *
 * Always true: only names of capabilities.shell.allow that no artifact shadows are written;
 * nothing here grants anything, and a manifest that cannot be read changes nothing.
 */
#include "manifest/text/yaml_tree.h"
#include "session/hooks/hooks_internal.h"

#include "base/alloc.h"
#include "session/commands/shell.h"
#include "session/state/session.h"

#include <string.h>

static struct tool_entry *
find_tool (struct session *s, const char *name)
{
    for (size_t i = 0; i < s->kit.tool_count; i++)
        if (str_eq (s->kit.tools[i].name, name))
            return &s->kit.tools[i];
    return NULL;
}

static void
log_refusal (struct hook *h, const char *binary, const char *why)
{
    _cleanup_free_ char *text = x_asprintf ("the manifest of %s was not written: %s", binary, why);
    hook_log (h, HOOK_ON_STAGE, text);
}

/* What the model reads from now on. */
static void
take (struct session *s, struct tool_entry *tool, const struct artifact_manifest *m)
{
    if (m->description)
        tool->description = arena_strdup (s->arena, m->description);
    _cleanup_json_ json_t *schema =
        m->input_schema ? yaml_to_json (m->input_schema, E_MAN_003, NULL) : NULL;
    if (! json_is_object (schema))
        return;
    _cleanup_free_ char *text = json_text (schema, JSON_TEXT_SORTED);
    tool->parameters = arena_strdup (s->arena, text);
}

static void
write_one (struct hook *h, const struct hook_tool_manifest *m)
{
    struct session *s = h->session;
    struct tool_entry *tool = find_tool (s, m->binary_name);
    if (! tool || ! shell_is_offered (s, m->binary_name)) {
        log_refusal (h, m->binary_name,
                     "capabilities.shell.allow does not list it, or an artifact "
                     "has its name");
        return;
    }
    _cleanup_error_ struct mur_error *err = NULL;
    _cleanup_free_ char *path = x_asprintf ("tools/%s/murmur.yaml", m->binary_name);
    struct artifact_manifest *manifest =
        artifact_manifest_parse (m->content, m->content_len, path, &err);
    if (manifest &&
        fs_write (s->places.runtime, path, m->content, m->content_len, 0666, false, &err))
        take (s, tool, manifest);
    if (manifest)
        artifact_manifest_free (manifest);
    if (err)
        log_refusal (h, m->binary_name, err->message);
}

void
hook_write_manifests (struct hook *h, const struct hook_output *output)
{
    for (size_t i = 0; i < output->manifest_count; i++)
        write_one (h, &output->manifests[i]);
}
