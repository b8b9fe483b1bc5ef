/* SPDX-License-Identifier: Apache-2.0 */
#include "door/planes/mcp_listen.h"

#include "base/alloc.h"
#include "door/planes/mcp_plane_internal.h"

#include <string.h>

#define MAX_LISTEN 64

/* --- streams --- */

static bool
has_place (struct mcp_plane *p, struct http_exchange *x)
{
    pthread_mutex_lock (&p->lock);
    bool has = p->listening < MAX_LISTEN && ! p->is_stopping;
    pthread_mutex_unlock (&p->lock);
    if (! has)
        mcp_work_refuse (x, 503, "64 clients listen, which is the bound");
    return has;
}

/* Opens its stream; the work is the stream's from here on. */
static void
listen_on (struct work *w, struct http_exchange *x)
{
    struct mcp_plane *p = w->plane;
    w->is_listening = true;
    pthread_mutex_lock (&p->lock);
    mcp_work_link (w);
    p->listening++;
    pthread_mutex_unlock (&p->lock);
    if (! mcp_work_open_stream (w, x)) {
        pthread_mutex_lock (&p->lock);
        mcp_work_unlink (w);
        p->listening--;
        mcp_watched_clear (&w->watched, p->spec.service);
        pthread_mutex_unlock (&p->lock);
    }
}

void
mcp_listen_begin (struct mcp_plane *p, struct http_exchange *x, struct mcp_request *r,
                  const char *credential)
{
    if (! has_place (p, x))
        return;
    struct work *w = mcp_work_new (p, r, credential);
    mcp_watched_listen (&w->watched, &p->lock, p->spec.service, &w->request);
    char *first = mcp_listen_acknowledged (p->spec.service, &w->request, &w->watched.uris);
    buf_printf (&w->out, "event: message\ndata: %s\n\n", first);
    free (first);
    listen_on (w, x);
    mcp_work_unref (w); /* the stream's own is left */
}

/* Under the lock. */
static void
end_stream_of (struct mcp_plane *p, const char *session)
{
    for (struct work *w = p->open; w; w = w->next)
        if (w->is_listening && str_eq (w->session, session))
            mcp_work_end (w);
}

void
mcp_listen_session (struct mcp_plane *p, struct http_exchange *x, struct mcp_session *known)
{
    if (! has_place (p, x))
        return;
    struct mcp_request r = { .revision = known->peer.revision };
    struct work *w = mcp_work_new (p, &r, NULL);
    memcpy (w->session, known->id, sizeof w->session);
    buf_puts (&w->out, ":\n\n"); /* it is told at once that it is open */
    pthread_mutex_lock (&p->lock);
    end_stream_of (p, known->id);
    pthread_mutex_unlock (&p->lock);
    listen_on (w, x);
    pthread_mutex_lock (&p->lock);
    mcp_listen_tell_news (w, known);
    pthread_mutex_unlock (&p->lock);
    mcp_work_unref (w);
}

void
mcp_listen_forget (struct mcp_plane *p, const char *session)
{
    pthread_mutex_lock (&p->lock);
    end_stream_of (p, session);
    pthread_mutex_unlock (&p->lock);
}

void
mcp_listen_over (struct work *w)
{
    _cleanup_mcp_answer_ struct mcp_answer a = { 0 };
    if (! w->session[0]) {
        mcp_listen_end (&w->request, &a);
        mcp_work_put (w, mcp_answer_text (&w->request, &a, w->plane->info));
    }
    mcp_work_end (w);
}

/* --- changes --- */

void
mcp_listen_tell_news (struct work *w, struct mcp_session *known)
{
    if (! w->stream)
        return;
    for (size_t i = 0; i < known->news.len; i++)
        mcp_work_put (w, mcp_resource_updated_text (NULL, known->news.items[i]));
    strv_free (&known->news);
    for (int list = 0; list < MCP_LIST_COUNT; list++)
        if (known->has_new[list])
            mcp_work_put (w, mcp_list_changed_text (NULL, (enum mcp_list)list));
    memset (known->has_new, 0, sizeof known->has_new);
}

/* Under the lock: where that session reads now; NULL: nowhere. */
static struct work *
stream_of (struct mcp_plane *p, const char *session)
{
    for (struct work *w = p->open; w; w = w->next)
        if (w->stream && ! w->is_over && str_eq (w->session, session))
            return w;
    return NULL;
}

void
mcp_listen_tell_list (struct mcp_plane *p, enum mcp_list list)
{
    pthread_mutex_lock (&p->lock);
    for (struct work *w = p->open; w; w = w->next)
        if (w->is_listening && mcp_listens_for (&w->request, list))
            mcp_work_put (w, mcp_list_changed_text (&w->request, list));
    for (size_t i = 0; i < MCP_SESSIONS_MAX; i++) {
        struct mcp_session *one = &p->sessions.all[i];
        struct work *w = one->id[0] ? stream_of (p, one->id) : NULL;
        one->has_new[list] = one->id[0] && ! w;
        if (w)
            mcp_work_put (w, mcp_list_changed_text (NULL, list));
    }
    pthread_mutex_unlock (&p->lock);
}

void
mcp_listen_tell_resource (struct mcp_plane *p, const char *uri)
{
    pthread_mutex_lock (&p->lock);
    for (struct work *w = p->open; w; w = w->next)
        if (strv_contains (&w->watched.uris, uri))
            mcp_work_put (w, mcp_resource_updated_text (&w->request, uri));
    for (size_t i = 0; i < MCP_SESSIONS_MAX; i++) {
        struct mcp_session *one = &p->sessions.all[i];
        if (! strv_contains (&one->watched.uris, uri))
            continue;
        struct work *w = stream_of (p, one->id);
        if (w)
            mcp_work_put (w, mcp_resource_updated_text (NULL, uri));
        else if (! strv_contains (&one->news, uri))
            strv_push (&one->news, uri);
    }
    pthread_mutex_unlock (&p->lock);
}
