/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/request.h"

#include "base/alloc.h"
#include "mcp/logging.h"

#include <string.h>

void
mcp_peer_clear (struct mcp_peer *p)
{
    json_decref (p->capabilities);
    *p = (struct mcp_peer){ 0 };
}

void
mcp_request_clear (struct mcp_request *r)
{
    mcp_message_clear (&r->message);
    *r = (struct mcp_request){ 0 };
}

void
mcp_answer_clear (struct mcp_answer *a)
{
    json_decref (a->result);
    json_decref (a->data);
    free (a->text);
    *a = (struct mcp_answer){ 0 };
}

bool
mcp_refuse (struct mcp_answer *a, enum mcp_code code, const char *fmt, ...)
{
    va_list ap;
    mcp_answer_clear (a);
    va_start (ap, fmt);
    a->text = x_vasprintf (fmt, ap);
    va_end (ap);
    a->code = code;
    return false;
}

static json_t *
modern_revisions (void)
{
    json_t *list = json_array ();
    for (size_t i = 0; i < mcp_revision_count; i++)
        if (mcp_revisions[i].era == MCP_MODERN)
            json_array_append_new (list, json_string (mcp_revisions[i].name));
    return list;
}

static bool
refuse_version (struct mcp_answer *no, const char *asked)
{
    mcp_refuse (no, MCP_VERSION_UNSERVED, "protocol revision %s is not served", asked);
    no->data = json_object ();
    json_object_set_new (no->data, "supported", modern_revisions ());
    json_set_string (no->data, "requested", asked);
    return false;
}

static bool
judge_modern (struct mcp_request *r, const json_t *meta, const char *version, struct mcp_answer *no)
{
    const struct mcp_revision *revision = mcp_revision_find (version);
    if (! revision || revision->era != MCP_MODERN)
        return refuse_version (no, version);
    r->revision = revision;
    r->capabilities = json_object_get (meta, MCP_META_CAPS);
    if (! json_is_object (r->capabilities))
        return mcp_refuse (no, MCP_INVALID_PARAMS, "_meta needs %s, an object", MCP_META_CAPS);
    const json_t *level = json_object_get (meta, MCP_META_LOG_LEVEL);
    r->log_level = mcp_level_find (json_string_value (level));
    if (! level || r->log_level)
        return true;
    _cleanup_free_ char *levels = mcp_levels_words ();
    return mcp_refuse (no, MCP_INVALID_PARAMS, "%s must be one of %s", MCP_META_LOG_LEVEL, levels);
}

static bool
judge_revision (struct mcp_request *r, const struct mcp_peer *peer, struct mcp_answer *no)
{
    const json_t *meta = json_object_get (r->message.params, "_meta");
    const json_t *version = json_object_get (meta, MCP_META_VERSION);
    if (json_is_string (version))
        return judge_modern (r, meta, json_string_value (version), no);
    bool is_notice = r->message.kind == MCP_NOTIFICATION;
    if (version || (meta && ! json_is_object (meta)))
        return mcp_refuse (no, MCP_INVALID_PARAMS, "_meta needs %s, a string", MCP_META_VERSION);
    if (peer && peer->revision) {
        r->revision = peer->revision;
        r->capabilities = peer->capabilities;
        r->log_level = peer->log_level;
        return true;
    }
    r->revision = mcp_revision_find (MCP_NEWEST_LEGACY);
    if (r->method->eras == MCP_LEGACY || is_notice)
        return true;
    r->revision = mcp_revision_find (MCP_NEWEST_MODERN);
    return mcp_refuse (no, MCP_INVALID_PARAMS,
                       "_meta needs %s and %s; a client of a revision before %s sends initialize "
                       "first",
                       MCP_META_VERSION, MCP_META_CAPS, MCP_NEWEST_MODERN);
}

bool
mcp_request_judge (struct mcp_request *r, const struct mcp_peer *peer, struct mcp_answer *no)
{
    const struct mcp_message *m = &r->message;
    r->method = mcp_method_find (m->method);
    r->revision = mcp_revision_find (MCP_NEWEST_MODERN);
    if (m->kind == MCP_BAD)
        return mcp_refuse (no, m->code, "%s", m->why);
    if (! judge_revision (r, peer, no))
        return false;
    const json_t *token = json_object_get (json_object_get (m->params, "_meta"), "progressToken");
    r->progress_token = json_is_string (token) || json_is_integer (token) ? token : NULL;
    if (m->kind == MCP_REQUEST && ! (r->method->eras & r->revision->era))
        return mcp_refuse (no, MCP_NO_METHOD, "%s: there is no such method in revision %s",
                           m->method, r->revision->name);
    if (m->kind == MCP_REQUEST && r->method->id == MCP_NO_SUCH_METHOD)
        return mcp_refuse (no, MCP_NO_METHOD, "%s: there is no such method", m->method);
    return true;
}

bool
mcp_client_can (const struct mcp_request *r, const char *capability)
{
    const json_t *from = r->capabilities;
    if (strchr (capability, '/'))
        from = json_object_get (from, "extensions");
    return json_is_object (json_object_get (from, capability));
}

static void
finish_modern (json_t *result, const json_t *server)
{
    if (! json_object_get (result, "resultType"))
        json_set_string (result, "resultType", "complete");
    json_t *meta = json_object_get (result, "_meta");
    if (! meta) {
        meta = json_object ();
        json_object_set_new (result, "_meta", meta);
    }
    json_object_set (meta, MCP_META_SERVER, (json_t *)(uintptr_t)server);
}

char *
mcp_answer_text (const struct mcp_request *r, const struct mcp_answer *a, const json_t *server)
{
    if (! a->result)
        return mcp_error_text (r->message.id, a->code, a->text ? a->text : "", a->data);
    if (r->revision->era == MCP_MODERN)
        finish_modern (a->result, server);
    return mcp_result_text (r->message.id, a->result);
}

char *
mcp_progress_text (const struct mcp_request *r, double progress, double total, const char *message)
{
    if (! r->progress_token)
        return NULL;
    _cleanup_json_ json_t *params = json_object ();
    json_object_set (params, "progressToken", (json_t *)(uintptr_t)r->progress_token);
    json_object_set_new (params, "progress", json_real (progress));
    if (total > 0)
        json_object_set_new (params, "total", json_real (total));
    if (message)
        json_set_string (params, "message", message);
    return mcp_request_text (NULL, "notifications/progress", params);
}
