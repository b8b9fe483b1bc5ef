/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/pinned.h"

#include "mcp/definitions.h"

#include <string.h>

static bool
is_text_array (const json_t *value)
{
    size_t i;
    json_t *item;
    json_array_foreach (value, i, item) if (! json_is_string (item)) return false;
    return json_is_array (value);
}

static bool
is_text_object (const json_t *value)
{
    const char *key;
    json_t *item;
    json_object_foreach ((json_t *)(uintptr_t)value, key,
                         item) if (! json_is_string (item)) return false;
    return json_is_object (value);
}

/* What the tree holds may be named, nothing else. */
static bool
is_entry (const char *entry)
{
    return entry && entry[0] && entry[0] != '/' && ! strstr (entry, "..");
}

static void
take (struct mcp_pinned *p)
{
    const struct mcp_revision *revision;
    p->source = json_get_string (p->whole, "source");
    p->url = json_get_string (p->whole, "url");
    p->key_header = json_get_string (p->whole, "key_header");
    p->interpreter = json_get_string (p->whole, "interpreter");
    p->entry = json_get_string (p->whole, "entry");
    p->flags = json_object_get (p->whole, "flags");
    p->args = json_object_get (p->whole, "args");
    p->env = json_object_get (p->whole, "env");
    p->revision = json_get_string (p->whole, "revision");
    p->instructions = json_get_string (p->whole, "instructions");
    p->info = json_object_get (p->whole, "server");
    p->tools = json_object_get (p->whole, "tools");
    revision = mcp_revision_find (p->revision);
    p->era = revision ? revision->era : MCP_LEGACY;
}

static const char *
fault_of (const struct mcp_pinned *p)
{
    if (! json_is_object (p->whole) ||
        json_integer_value (json_object_get (p->whole, "format")) != 1)
        return "it is not of format 1";
    if (! p->source || ! p->revision || ! json_is_array (p->tools))
        return "source, revision or tools are missing";
    if (! p->url) {
        if (! p->interpreter || strchr (p->interpreter, '/') || ! is_entry (p->entry))
            return "it does not say what is started";
        if (! is_text_array (p->flags) || ! is_text_array (p->args) || ! is_text_object (p->env))
            return "flags, args or env are not texts";
    } else if (p->interpreter || p->entry) {
        return "it is far away and started here at once";
    }
    return json_array_size (p->tools) > MCP_TOOLS_MAX ? "it has too many tools" : NULL;
}

bool
mcp_pinned_read (struct mcp_pinned *p, const char *text, size_t len, const char *what,
                 struct mur_error **err)
{
    *p = (struct mcp_pinned){ .whole = json_parse (text, len, what, E_IO_003, err) };
    if (! p->whole)
        return false;
    take (p);
    const char *fault = fault_of (p);
    size_t i;
    json_t *tool;
    if (fault)
        mur_fail (err, E_IO_003, "%s: %s", what, fault);
    json_array_foreach (p->tools, i, tool)
    {
        _cleanup_free_ char *why = fault ? NULL : mcp_definition_fault (tool);
        if (why) {
            mur_fail (err, E_IO_003, "%s: %s", what, why);
            fault = "a tool";
        }
    }
    if (fault)
        mcp_pinned_clear (p);
    return ! fault;
}

void
mcp_pinned_clear (struct mcp_pinned *p)
{
    json_decref (p->whole);
    *p = (struct mcp_pinned){ 0 };
}

json_t *
mcp_pinned_hashes (const struct mcp_pinned *p)
{
    json_t *o = json_object ();
    size_t i;
    json_t *tool;
    json_array_foreach (p->tools, i, tool)
    {
        char hash[SHA256_HEX_LEN + 1];
        mcp_definition_hash (tool, hash);
        json_set_string (o, json_get_string (tool, "name"), hash);
    }
    return o;
}
