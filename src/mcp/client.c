/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/client.h"

#include "base/alloc.h"
#include "base/version.h"
#include "mcp/definitions.h"

#include <string.h>

void
mcp_client_clear (struct mcp_client *c)
{
    json_decref (c->capabilities);
    json_decref (c->info);
    free (c->instructions);
    *c = (struct mcp_client){ .asks = c->asks };
}

static json_t *
own_capabilities (const struct mcp_client *c, enum mcp_era era)
{
    json_t *o = mcp_inputs_capabilities (c->asks);
    if (era == MCP_MODERN)
        json_object_set_new (o, "extensions", json_pack ("{s:{}}", MCP_EXT_TASKS));
    return o;
}

static json_t *
own_info (void)
{
    return json_pack ("{s:s, s:s}", "name", "murmur", "version", MUR_VERSION);
}

static json_t *
with_meta (const struct mcp_client *c, const char *revision, json_t *params)
{
    json_t *meta = json_object_get (params, "_meta");
    if (! meta)
        json_object_set_new (params, "_meta", meta = json_object ());
    json_set_string (meta, MCP_META_VERSION, revision);
    json_object_set_new (meta, MCP_META_CAPS, own_capabilities (c, MCP_MODERN));
    json_object_set_new (meta, MCP_META_CLIENT, own_info ());
    return params;
}

json_t *
mcp_client_params (const struct mcp_client *c, json_t *params, int64_t progress)
{
    if (! params)
        params = json_object ();
    if (progress)
        json_object_set_new (params, "_meta", json_pack ("{s:I}", "progressToken", progress));
    return c->revision && c->revision->era == MCP_MODERN ? with_meta (c, c->revision->name, params)
                                                         : params;
}

json_t *
mcp_client_discover_params (const struct mcp_client *c)
{
    return with_meta (c, MCP_NEWEST_MODERN, json_object ());
}

json_t *
mcp_client_initialize_params (const struct mcp_client *c)
{
    json_t *o = json_object ();
    json_set_string (o, "protocolVersion", MCP_NEWEST_LEGACY);
    json_object_set_new (o, "capabilities", own_capabilities (c, MCP_LEGACY));
    json_object_set_new (o, "clientInfo", own_info ());
    return o;
}

static void
take_words (struct mcp_client *c, const json_t *result, const json_t *info)
{
    json_t *capabilities = json_object_get (result, "capabilities");
    const char *instructions = json_get_string (result, "instructions");
    c->capabilities = json_is_object (capabilities) ? json_incref (capabilities) : NULL;
    c->info = json_is_object (info) ? json_incref ((json_t *)(uintptr_t)info) : NULL;
    c->instructions = instructions ? x_strdup (instructions) : NULL;
}

bool
mcp_client_take_initialize (struct mcp_client *c, const json_t *result, char **said)
{
    const char *version = json_get_string (result, "protocolVersion");
    const struct mcp_revision *revision = mcp_revision_find (version);
    mcp_client_clear (c);
    if (! revision || revision->era != MCP_LEGACY) {
        *said = x_strdup (version ? version : "no protocolVersion");
        return false;
    }
    c->revision = revision;
    take_words (c, result, json_object_get (result, "serverInfo"));
    return true;
}

bool
mcp_client_take_discover (struct mcp_client *c, const json_t *result, char **said)
{
    const json_t *versions = json_object_get (result, "supportedVersions");
    const struct mcp_revision *best = NULL;
    size_t i;
    json_t *version;
    mcp_client_clear (c);
    json_array_foreach (versions, i, version)
    {
        const struct mcp_revision *r = mcp_revision_find (json_string_value (version));
        if (r && r->era == MCP_MODERN && (! best || r < best))
            best = r;
    }
    if (! best) {
        *said = json_is_array (versions) ? json_text (versions, JSON_TEXT_ORDERED)
                                         : x_strdup ("no supportedVersions");
        return false;
    }
    c->revision = best;
    take_words (c, result, json_object_get (json_object_get (result, "_meta"), MCP_META_SERVER));
    return true;
}

bool
mcp_client_names_legacy (const json_t *versions)
{
    bool is_legacy = false;
    size_t i;
    json_t *version;
    json_array_foreach (versions, i, version)
    {
        const struct mcp_revision *r = mcp_revision_find (json_string_value (version));
        if (r && r->era == MCP_MODERN)
            return false;
        is_legacy |= r != NULL;
    }
    return is_legacy;
}

bool
mcp_client_is_version_error (const json_t *error)
{
    return json_integer_value (json_object_get (error, "code")) == MCP_VERSION_UNSERVED;
}

char *
mcp_client_answer (const struct mcp_message *request, json_t *input)
{
    _cleanup_json_ json_t *result = input;
    if (! result && str_eq (request->method, "ping"))
        result = json_object ();
    if (result)
        return mcp_result_text (request->id, result);
    _cleanup_free_ char *why = x_asprintf ("%.80s is not offered by this client", request->method);
    return mcp_error_text (request->id, MCP_NO_METHOD, why, NULL);
}

char *
mcp_error_words (const json_t *error)
{
    const char *message = json_get_string (error, "message");
    long long code = json_integer_value (json_object_get (error, "code"));
    _cleanup_free_ char *shown = message ? mcp_text_shown (message) : x_strdup ("(no message)");
    return x_asprintf ("%lld: %.*s", code, (int)utf8_cut (shown, strlen (shown), 1000), shown);
}
