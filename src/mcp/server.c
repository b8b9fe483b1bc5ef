/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/server.h"

#include "base/alloc.h"
#include "mcp/logging.h"

#include <string.h>

#define LIST_TTL_MS 60000 /* how long a client may keep a list; changes are told beside it */

json_t *
mcp_service_info (const struct mcp_service *s)
{
    json_t *o = json_object ();
    json_set_string (o, "name", s->name);
    json_set_string (o, "version", s->version);
    return o;
}

json_t *
mcp_text_result (const char *text, size_t len, bool is_error)
{
    json_t *part = json_object (), *content = json_array (), *result = json_object ();
    json_set_string (part, "type", "text");
    json_set_string_n (part, "text", text ? text : "", len);
    json_array_append_new (content, part);
    json_object_set_new (result, "content", content);
    json_set_bool (result, "isError", is_error);
    return result;
}

bool
mcp_refuse_taskless (struct mcp_answer *answer, const char *what)
{
    mcp_refuse (answer, MCP_CAPABILITY_MISSING, "%s needs the extension " MCP_EXT_TASKS, what);
    answer->data =
        json_pack ("{s:{s:{s:{}}}}", "requiredCapabilities", "extensions", MCP_EXT_TASKS);
    return false;
}

/* --- opening --- */

static const struct {
    enum mcp_offer offer;
    const char *name, *extension; /* one of both */
    enum mcp_list list;           /* MCP_LIST_COUNT: it stays as it is */
    bool is_watched;
} offers[] = {
    { MCP_OFFERS_TOOLS, "tools", NULL, MCP_LIST_TOOLS, false },
    { MCP_OFFERS_RESOURCES, "resources", NULL, MCP_LIST_RESOURCES, true },
    { MCP_OFFERS_PROMPTS, "prompts", NULL, MCP_LIST_COUNT, false },
    { MCP_OFFERS_COMPLETIONS, "completions", NULL, MCP_LIST_COUNT, false },
    { MCP_OFFERS_SKILLS, NULL, MCP_EXT_SKILLS, MCP_LIST_COUNT, false },
    { MCP_OFFERS_TASKS, NULL, MCP_EXT_TASKS, MCP_LIST_COUNT, false },
};

static const struct {
    enum mcp_offer offer;
    const char *asked_as, *method;
} lists[] = {
    [MCP_LIST_TOOLS] = { MCP_OFFERS_TOOLS, "toolsListChanged", "notifications/tools/list_changed" },
    [MCP_LIST_RESOURCES] = { MCP_OFFERS_RESOURCES, "resourcesListChanged",
                             "notifications/resources/list_changed" },
};

static bool
tells_of (const struct mcp_service *s, enum mcp_list list)
{
    return list < MCP_LIST_COUNT && s->tells_changes && (s->offers & lists[list].offer) &&
           (list != MCP_LIST_RESOURCES || s->watch_list);
}

static json_t *
capabilities_of (const struct mcp_service *s, enum mcp_era era)
{
    json_t *o = json_pack ("{s:{}}", "logging"), *extensions = json_object ();
    for (size_t i = 0; i < ARRAY_LEN (offers); i++) {
        json_t *one = json_object ();
        bool is_offered = s->offers & offers[i].offer;
        if (tells_of (s, offers[i].list))
            json_set_bool (one, "listChanged", true);
        if (offers[i].is_watched && s->watch)
            json_set_bool (one, "subscribe", true);
        if (is_offered && offers[i].name)
            json_object_set (o, offers[i].name, one);
        else if (is_offered && era == MCP_MODERN)
            json_object_set (extensions, offers[i].extension, one);
        json_decref (one);
    }
    if (json_object_size (extensions))
        json_object_set (o, "extensions", extensions);
    json_decref (extensions);
    return o;
}

static void
set_instructions (const struct mcp_service *s, json_t *result)
{
    if (s->instructions)
        json_set_string (result, "instructions", s->instructions);
}

static void
set_lifetime (json_t *result)
{
    json_set_u64 (result, "ttlMs", LIST_TTL_MS);
    json_set_string (result, "cacheScope", "private");
}

static void
discover (const struct mcp_service *s, json_t *result)
{
    json_t *versions = json_array ();
    for (size_t i = 0; i < mcp_revision_count; i++)
        if (mcp_revisions[i].era == MCP_MODERN)
            json_array_append_new (versions, json_string (mcp_revisions[i].name));
    json_object_set_new (result, "supportedVersions", versions);
    json_object_set_new (result, "capabilities", capabilities_of (s, MCP_MODERN));
    set_instructions (s, result);
    set_lifetime (result);
}

static const struct mcp_revision *
oldest_revision (void)
{
    return &mcp_revisions[mcp_revision_count - 1];
}

static void
initialize (const struct mcp_service *s, struct mcp_peer *peer, const json_t *params,
            struct mcp_answer *answer)
{
    const char *asked = json_get_string (params, "protocolVersion");
    /* The first clients did not say what they speak. */
    const struct mcp_revision *revision = asked ? mcp_revision_find (asked) : oldest_revision ();
    if (! revision || revision->era != MCP_LEGACY)
        revision = mcp_revision_find (MCP_NEWEST_LEGACY);
    mcp_peer_clear (peer);
    peer->revision = revision;
    json_t *capabilities = json_object_get (params, "capabilities");
    peer->capabilities = json_is_object (capabilities) ? json_incref (capabilities) : NULL;
    answer->result = json_object ();
    json_set_string (answer->result, "protocolVersion", revision->name);
    json_object_set_new (answer->result, "capabilities", capabilities_of (s, MCP_LEGACY));
    json_object_set_new (answer->result, "serverInfo", mcp_service_info (s));
    set_instructions (s, answer->result);
    if (tells_of (s, MCP_LIST_RESOURCES))
        s->watch_list (s->ctx);
}

/* A peer that keeps nothing between its requests hears nothing. */
static void
set_level (struct mcp_peer *peer, const json_t *params, struct mcp_answer *answer)
{
    const char *level = mcp_level_find (json_get_string (params, "level"));
    if (! level) {
        _cleanup_free_ char *levels = mcp_levels_words ();
        mcp_refuse (answer, MCP_INVALID_PARAMS, "level must be one of %s", levels);
        return;
    }
    if (peer)
        peer->log_level = level;
    answer->result = json_object ();
}

/* --- lists and what they name --- */

struct served {
    enum mcp_method_id id;
    mcp_serve_fn *fn;
    const char *list; /* the member a list is answered under; NULL: no list */
};

static struct served
served_by (const struct mcp_service *s, enum mcp_method_id id)
{
    const struct served table[] = {
        { MCP_TOOLS_LIST, s->tools_list, "tools" },
        { MCP_TOOLS_CALL, s->tools_call, NULL },
        { MCP_RESOURCES_LIST, s->resources_list, "resources" },
        { MCP_RESOURCES_READ, s->resources_read, NULL },
        { MCP_RESOURCE_TEMPLATES, s->resource_templates, "resourceTemplates" },
        { MCP_PROMPTS_LIST, s->prompts_list, "prompts" },
        { MCP_PROMPTS_GET, s->prompts_get, NULL },
        { MCP_SKILLS_LIST, s->skills_list, "skills" },
        { MCP_SKILLS_GET, s->skills_get, NULL },
        { MCP_TASKS_GET, s->tasks_get, NULL },
        { MCP_TASKS_UPDATE, s->tasks_update, NULL },
        { MCP_TASKS_CANCEL, s->tasks_cancel, NULL },
        { MCP_COMPLETE, s->complete, NULL },
    };
    for (size_t i = 0; i < ARRAY_LEN (table); i++)
        if (table[i].id == id)
            return table[i];
    return (struct served){ id, NULL, NULL };
}

static void
serve_list (const struct mcp_service *s, const struct served *by, const struct mcp_call *call,
            struct mcp_answer *answer)
{
    const json_t *cursor = json_object_get (call->params, "cursor");
    if (cursor && ! json_is_null (cursor)) {
        mcp_refuse (answer, MCP_INVALID_PARAMS, "there is no such cursor");
        return;
    }
    by->fn (s->ctx, call, answer);
    if (! answer->result)
        return;
    json_t *result = json_object ();
    json_object_set_new (result, by->list, answer->result);
    if (call->request->revision->era == MCP_MODERN)
        set_lifetime (result);
    answer->result = result;
}

static void
serve_named (const struct mcp_service *s, const struct served *by, struct mcp_call *call,
             struct mcp_answer *answer)
{
    _cleanup_json_ json_t *none = json_object ();
    const struct mcp_method *method = call->request->method;
    const json_t *arguments = json_object_get (call->params, "arguments");
    call->name = json_get_string (call->params, method->named_by);
    call->arguments = arguments && ! json_is_null (arguments) ? arguments : none;
    if (! call->name)
        mcp_refuse (answer, MCP_INVALID_PARAMS, "%s needs %s, a string", method->name,
                    method->named_by);
    else if (! json_is_object (call->arguments))
        mcp_refuse (answer, MCP_INVALID_PARAMS, "arguments must be an object");
    else
        by->fn (s->ctx, call, answer);
    if (answer->result && method->id == MCP_RESOURCES_READ &&
        call->request->revision->era == MCP_MODERN)
        set_lifetime (answer->result);
}

void
mcp_serve (const struct mcp_service *s, struct mcp_peer *peer, const struct mcp_request *r,
           const struct mcp_sink *sink, struct cancel *cancel, struct mcp_answer *answer)
{
    _cleanup_json_ json_t *none = json_object ();
    const json_t *params = r->message.params ? r->message.params : none;
    struct mcp_call call = { .request = r, .params = params, .sink = sink, .cancel = cancel };
    const struct served by = served_by (s, r->method->id);
    bool is_offered = ! r->method->needs || (s->offers & r->method->needs);
    if (r->method->id == MCP_INITIALIZE)
        initialize (s, peer, params, answer);
    else if (r->method->id == MCP_DISCOVER)
        discover (s, answer->result = json_object ());
    else if (r->method->id == MCP_PING)
        answer->result = json_object ();
    else if (r->method->id == MCP_SET_LEVEL)
        set_level (peer, params, answer);
    else if (! is_offered || ! by.fn)
        mcp_refuse (answer, MCP_NO_METHOD, "%s: this server does not offer it", r->method->name);
    else if (by.list)
        serve_list (s, &by, &call, answer);
    else if (! r->method->named_by)
        by.fn (s->ctx, &call, answer);
    else
        serve_named (s, &by, &call, answer);
}

/* --- subscriptions --- */

static json_t *
asked_for (const struct mcp_request *r)
{
    return json_object_get (r->message.params, "notifications");
}

bool
mcp_listens_for (const struct mcp_request *r, enum mcp_list list)
{
    return json_is_true (json_object_get (asked_for (r), lists[list].asked_as));
}

char *
mcp_notice_text (const struct mcp_request *subscription, const char *method, json_t *params)
{
    _cleanup_json_ json_t *o = params;
    if (subscription) {
        json_t *meta = json_object ();
        json_object_set (meta, MCP_META_SUBSCRIBED, (json_t *)(uintptr_t)subscription->message.id);
        json_object_set_new (o, "_meta", meta);
    }
    return mcp_request_text (NULL, method, o);
}

char *
mcp_listen_acknowledged (const struct mcp_service *s, const struct mcp_request *r,
                         const struct strv *watched)
{
    json_t *params = json_object (), *honoured = json_object ();
    for (int list = 0; list < MCP_LIST_COUNT; list++)
        if (mcp_listens_for (r, (enum mcp_list)list) && tells_of (s, (enum mcp_list)list))
            json_set_bool (honoured, lists[list].asked_as, true);
    if (json_object_get (honoured, lists[MCP_LIST_RESOURCES].asked_as))
        s->watch_list (s->ctx);
    json_t *uris = watched->len ? json_array () : NULL;
    for (size_t i = 0; i < watched->len; i++)
        json_array_append_new (uris, json_string (watched->items[i]));
    if (uris)
        json_object_set_new (honoured, "resourceSubscriptions", uris);
    json_object_set_new (params, "notifications", honoured);
    return mcp_notice_text (r, "notifications/subscriptions/acknowledged", params);
}

char *
mcp_list_changed_text (const struct mcp_request *subscription, enum mcp_list list)
{
    return mcp_notice_text (subscription, lists[list].method, subscription ? json_object () : NULL);
}

void
mcp_listen_end (const struct mcp_request *r, struct mcp_answer *answer)
{
    json_t *meta = json_object ();
    json_object_set (meta, MCP_META_SUBSCRIBED, (json_t *)(uintptr_t)r->message.id);
    answer->result = json_object ();
    json_object_set_new (answer->result, "_meta", meta);
}
