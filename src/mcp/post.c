/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/post.h"

#include "base/alloc.h"
#include "mcp/headers.h"

#include <string.h>
#include <strings.h>

static void
add (struct strv *out, const char *name, const char *value)
{
    strv_push (out, name);
    strv_take (out, mcp_header_value (value));
}

static void
add_param (void *ctx, const char *header, const json_t *value)
{
    _cleanup_free_ char *text = NULL;
    if (json_is_string (value))
        text = x_strdup (json_string_value (value));
    else if (json_is_boolean (value))
        text = x_strdup (json_is_true (value) ? "true" : "false");
    else if (json_is_number (value))
        text = json_text (value, JSON_TEXT_ORDERED);
    if (text)
        add (ctx, header, text);
}

void
mcp_post_headers (const struct mcp_client *c, const char *method, const json_t *params,
                  const json_t *schema, struct strv *out)
{
    const json_t *meta = json_object_get (params, "_meta");
    const char *said = json_get_string (meta, MCP_META_VERSION);
    const char *version = said ? said : c->revision ? c->revision->name : NULL;
    const char *named_by = method ? mcp_method_find (method)->named_by : NULL;
    const char *name = named_by ? json_get_string (params, named_by) : NULL;
    if (version)
        add (out, "MCP-Protocol-Version", version);
    if (! said || ! method)
        return;
    add (out, "Mcp-Method", method);
    if (name)
        add (out, "Mcp-Name", name);
    if (schema)
        mcp_params_visit (schema, json_object_get (params, "arguments"), add_param, out);
}

bool
mcp_session_id_is_valid (const char *id)
{
    size_t len = 0;
    for (; id[len]; len++)
        if (id[len] < 0x21 || id[len] > 0x7e || len >= MCP_SESSION_MAX)
            return false;
    return len > 0;
}

static bool
is_type (const char *text, const char *type)
{
    size_t len = strlen (type);
    text += strspn (text, " \t");
    return strncasecmp (text, type, len) == 0 && strchr ("; \t", text[len]);
}

enum mcp_body
mcp_body_of (const char *content_type)
{
    if (! content_type)
        return MCP_BODY_OTHER;
    if (is_type (content_type, "application/json"))
        return MCP_BODY_JSON;
    return is_type (content_type, "text/event-stream") ? MCP_BODY_EVENTS : MCP_BODY_OTHER;
}

json_t *
mcp_tools_over_http (const json_t *tools, struct strv *dropped)
{
    json_t *kept = json_array (), *tool;
    size_t i;
    json_array_foreach (tools, i, tool)
    {
        if (mcp_params_visit (json_object_get (tool, "inputSchema"), NULL, NULL, NULL))
            json_array_append (kept, tool);
        else if (dropped)
            strv_push (dropped, json_get_string (tool, "name"));
    }
    return kept;
}
