/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/watched.h"

void
mcp_watched_clear (struct mcp_watched *w, const struct mcp_service *s)
{
    for (size_t i = 0; i < w->uris.len; i++)
        s->unwatch (s->ctx, w->uris.items[i]);
    strv_free (&w->uris);
}

static void
add (struct mcp_watched *w, pthread_mutex_t *lock, const struct mcp_service *s, const char *uri,
     struct mcp_answer *no)
{
    if (strv_contains (&w->uris, uri))
        return;
    if (w->uris.len == MCP_WATCHED_MAX) {
        mcp_refuse (no, MCP_INVALID_PARAMS, "%d resources are looked after, which is the bound",
                    MCP_WATCHED_MAX);
        return;
    }
    if (! s->watch (s->ctx, uri, no))
        return;
    pthread_mutex_lock (lock);
    strv_push (&w->uris, uri);
    pthread_mutex_unlock (lock);
}

static void
drop (struct mcp_watched *w, pthread_mutex_t *lock, const struct mcp_service *s, const char *uri)
{
    struct strv kept = { 0 };
    if (! strv_contains (&w->uris, uri))
        return;
    for (size_t i = 0; i < w->uris.len; i++)
        if (! str_eq (w->uris.items[i], uri))
            strv_push (&kept, w->uris.items[i]);
    pthread_mutex_lock (lock);
    strv_free (&w->uris);
    w->uris = kept;
    pthread_mutex_unlock (lock);
    s->unwatch (s->ctx, uri);
}

void
mcp_watched_serve (struct mcp_watched *w, pthread_mutex_t *lock, const struct mcp_service *s,
                   const struct mcp_request *r, struct mcp_answer *answer)
{
    const char *uri = json_get_string (r->message.params, r->method->named_by);
    if (! s->watch || ! (s->offers & r->method->needs))
        mcp_refuse (answer, MCP_NO_METHOD, "%s: this server does not offer it", r->method->name);
    else if (! uri)
        mcp_refuse (answer, MCP_INVALID_PARAMS, "%s needs %s, a string", r->method->name,
                    r->method->named_by);
    else if (r->method->id == MCP_SUBSCRIBE)
        add (w, lock, s, uri, answer);
    else
        drop (w, lock, s, uri);
    if (! answer->code)
        answer->result = json_object ();
}

void
mcp_watched_listen (struct mcp_watched *w, pthread_mutex_t *lock, const struct mcp_service *s,
                    const struct mcp_request *r)
{
    const json_t *asked = json_object_get (r->message.params, "notifications");
    size_t i;
    json_t *uri;
    if (! s->watch || ! (s->offers & MCP_OFFERS_RESOURCES))
        return;
    json_array_foreach (json_object_get (asked, "resourceSubscriptions"), i, uri)
    {
        _cleanup_mcp_answer_ struct mcp_answer no = { 0 };
        if (json_is_string (uri))
            add (w, lock, s, json_string_value (uri), &no);
    }
}

char *
mcp_resource_updated_text (const struct mcp_request *subscription, const char *uri)
{
    json_t *params = json_pack ("{s:s}", "uri", uri);
    return mcp_notice_text (subscription, "notifications/resources/updated", params);
}
