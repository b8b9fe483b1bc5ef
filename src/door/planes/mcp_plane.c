/* SPDX-License-Identifier: Apache-2.0 */
#include "door/planes/mcp_plane.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/condition.h"
#include "door/callers/refuse.h"
#include "door/planes/mcp_sessions.h"
#include "door/planes/plane_answer.h"
#include "mcp/headers.h"
#include "mcp/input.h"
#include "mcp/outgoing.h"
#include "mcp/progress.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#define MAX_CALLS   64
#define MAX_LISTEN  64
#define STACK_BYTES ((size_t)1024 * 1024)
#define BEAT_MS     10000
#define LATE_MS     1000

/* One request that is not answered at once: shared by its thread and its stream. */
struct work {
    struct mcp_plane *plane;
    struct work *next, **link; /* of the plane's list while open */
    unsigned refs;
    struct mcp_request request;
    struct mcp_peer peer; /* a copy: what the request borrows of it */
    char session[MCP_SESSION_LEN + 1];
    struct mcp_watched watched; /* of a subscription */
    char *principal;
    struct cancel *cancel;
    struct http_exchange *x;    /* to be answered with JSON; NULL: a stream */
    bool is_plain, is_late;     /* x stays one; it may become a stream yet */
    struct http_stream *stream; /* NULL once closed */
    struct buf out;             /* of the stream */
    size_t sent;
    bool is_over, is_listening;
    uint64_t told_ms;
    struct mcp_progress progress;
};

struct mcp_plane {
    struct mcp_plane_spec spec;
    const struct door_auth *auth;
    json_t *info;
    struct mcp_sessions sessions; /* the server's thread alone, but for what they watch */
    struct mcp_outgoing outgoing; /* what legacy clients are asked */

    pthread_mutex_t lock; /* what follows, and each work's stream */
    pthread_cond_t is_idle;
    struct work *open;
    unsigned running, listening;
    bool is_stopping;
};

struct mcp_plane *
mcp_plane_new (const struct mcp_plane_spec *spec, const struct door_auth *auth)
{
    struct mcp_plane *p = x_new0 (struct mcp_plane);
    p->spec = *spec;
    p->auth = auth;
    p->info = mcp_service_info (spec->service);
    mcp_outgoing_init (&p->outgoing);
    pthread_mutex_init (&p->lock, NULL);
    condition_init (&p->is_idle);
    return p;
}

/* --- answers --- */

static void
reply_text (struct http_exchange *x, int status, char *text, const char *session)
{
    _cleanup_plane_headers_ struct plane_headers h = { 0 };
    plane_header (&h, "content-type", "application/json");
    if (session)
        plane_header (&h, "mcp-session-id", session);
    http_reply_take (x, status, h.items, h.len, text, strlen (text));
}

static void
reply (struct mcp_plane *p, struct http_exchange *x, const struct mcp_request *r,
       const struct mcp_answer *a, const char *session)
{
    int status = a->result ? 200 : mcp_http_status (a->code, r->revision->era);
    reply_text (x, status, mcp_answer_text (r, a, p->info), session);
}

static void
refuse (struct mcp_plane *p, struct http_exchange *x, int status, const char *why)
{
    (void)p;
    reply_text (x, status, mcp_error_text (NULL, MCP_INVALID_REQUEST, why, NULL), NULL);
}

/* --- the head --- */

bool
mcp_plane_refuse (struct mcp_plane *p, struct http_exchange *x, const char *credential)
{
    const char *origin = http_exchange_header (x, "origin", NULL);
    const char *host = http_exchange_header (x, "host", NULL);
    if (mcp_is_foreign (origin, host, p->spec.is_loopback)) {
        refuse (p, x, 403, "a page of another site may not ask");
        return true;
    }
    if (p->auth && ! door_auth_allows (p->auth, credential, MCP_SCOPE_TOOLS)) {
        door_refuse (x, p->auth, AUTH_INSUFFICIENT_SCOPE, credential, MCP_SCOPE_TOOLS);
        return true;
    }
    if (strcmp (http_exchange_method (x), "POST") == 0)
        return false;
    static const struct http_header allow = { "allow", "POST", 4 };
    http_reply (x, 405, &allow, 1, NULL, 0);
    return true;
}

/* The peer a request without a session of ours is judged by: a legacy revision it names, or the one
 * an absent header means where nothing says that it is modern. */
static void
peer_without_session (const struct http_exchange *x, const struct mcp_message *m,
                      struct mcp_peer *peer)
{
    const char *named = http_exchange_header (x, "mcp-protocol-version", NULL);
    const json_t *meta = json_object_get (m->params, "_meta");
    const struct mcp_revision *revision = mcp_revision_find (named);
    *peer = (struct mcp_peer){ 0 };
    if (revision && revision->era == MCP_LEGACY)
        peer->revision = revision;
    else if (! named && ! json_object_get (meta, MCP_META_VERSION) &&
             ! http_exchange_header (x, "mcp-method", NULL) &&
             mcp_method_find (m->method)->id != MCP_DISCOVER)
        peer->revision = mcp_revision_find (MCP_OLDEST_HTTP);
}

/* --- work --- */

static void
unref_work (struct work *w)
{
    struct mcp_plane *p = w->plane;
    pthread_mutex_lock (&p->lock);
    bool is_last = --w->refs == 0;
    pthread_mutex_unlock (&p->lock);
    if (! is_last)
        return;
    mcp_request_clear (&w->request);
    mcp_peer_clear (&w->peer);
    cancel_unref (w->cancel);
    buf_free (&w->out);
    free (w->principal);
    free (w);
}

static void
unlink_work (struct work *w)
{
    *w->link = w->next;
    if (w->next)
        w->next->link = w->link;
}

/* Under the lock; <text> is taken over. */
static void
put_event (struct work *w, char *text)
{
    if (text && w->stream && ! w->is_over) {
        buf_printf (&w->out, "event: message\ndata: %s\n\n", text);
        http_stream_wake (w->stream);
    }
    free (text);
}

static ssize_t
stream_read (void *ctx, char *out, size_t cap)
{
    struct work *w = ctx;
    struct mcp_plane *p = w->plane;
    pthread_mutex_lock (&p->lock);
    uint64_t now = clock_monotonic_ms ();
    if (! w->is_over && w->sent == w->out.len && now - w->told_ms >= BEAT_MS) {
        char *text = mcp_progress_beat (&w->progress, &w->request);
        buf_printf (&w->out, text ? "event: message\ndata: %s\n\n" : ": %s\n\n", text ? text : "");
        free (text);
        w->told_ms = now;
    }
    size_t count = w->out.len - w->sent;
    count = count < cap ? count : cap;
    if (count)
        memcpy (out, w->out.data + w->sent, count);
    w->sent += count;
    bool is_gone = ! count && w->stream && http_stream_is_gone (w->stream);
    ssize_t n = count ? (ssize_t)count : w->is_over || is_gone ? HTTP_STREAM_END : HTTP_STREAM_WAIT;
    pthread_mutex_unlock (&p->lock);
    return n;
}

/* The client is gone, or has all: in the modern era that is how a call is cancelled. */
static void
stream_closed (void *ctx)
{
    struct work *w = ctx;
    struct mcp_plane *p = w->plane;
    pthread_mutex_lock (&p->lock);
    w->stream = NULL;
    bool is_cancel = ! w->is_over && w->request.revision->era == MCP_MODERN;
    if (w->is_listening) {
        unlink_work (w);
        p->listening--;
        mcp_watched_clear (&w->watched, p->spec.service);
    }
    pthread_mutex_unlock (&p->lock);
    if (is_cancel && w->cancel)
        cancel_raise (w->cancel);
    unref_work (w);
}

static const struct http_stream_source source = { stream_read, 500, stream_closed };

static bool
open_stream (struct work *w, struct http_exchange *x)
{
    static const struct http_header headers[] = { { "content-type", "text/event-stream", 17 },
                                                  { "cache-control", "no-store", 8 },
                                                  { "x-accel-buffering", "no", 2 } };
    w->told_ms = clock_monotonic_ms ();
    w->refs++;
    w->stream = http_reply_stream (x, 200, headers, ARRAY_LEN (headers), &source, w);
    if (! w->stream)
        w->refs--;
    return w->stream != NULL;
}

/* Under the lock: from here on its status is told. */
static void
open_late (struct work *w)
{
    if (w->is_late && w->x)
        open_stream (w, steal_ptr (&w->x));
}

/* The last of a thread: the plane may go once none runs. NULL. */
static void *
thread_over (struct work *w)
{
    struct mcp_plane *p = w->plane;
    unref_work (w);
    pthread_mutex_lock (&p->lock);
    p->running--;
    pthread_cond_broadcast (&p->is_idle);
    pthread_mutex_unlock (&p->lock);
    return NULL;
}

/* A call that may be refused with a status of its own gets a moment for that; then the stream
 * begins, by which its client can cancel it. */
static void *
late_thread (void *arg)
{
    struct work *w = arg;
    struct mcp_plane *p = w->plane;
    uint64_t at_ms = clock_monotonic_ms () + LATE_MS;
    struct timespec at = { (time_t)(at_ms / 1000), (long)(at_ms % 1000) * 1000000 };
    int status = 0;
    pthread_mutex_lock (&p->lock);
    while (w->x && status != ETIMEDOUT)
        status = pthread_cond_timedwait (&p->is_idle, &p->lock, &at);
    open_late (w);
    pthread_mutex_unlock (&p->lock);
    return thread_over (w);
}

static void
send_before (void *ctx, char *text)
{
    struct work *w = ctx;
    pthread_mutex_lock (&w->plane->lock);
    open_late (w);
    put_event (w, text);
    pthread_mutex_unlock (&w->plane->lock);
}

static void
tell_progress (void *ctx, double at, double total, const char *message)
{
    struct work *w = ctx;
    pthread_mutex_lock (&w->plane->lock);
    open_late (w);
    w->told_ms = clock_monotonic_ms ();
    put_event (w, mcp_progress_tell (&w->progress, &w->request, at, total, message));
    pthread_mutex_unlock (&w->plane->lock);
}

static json_t *
ask_client (void *ctx, const char *method, const json_t *params, uint64_t timeout_ms)
{
    struct work *w = ctx;
    return mcp_outgoing_ask (&w->plane->outgoing, send_before, w, method, params, timeout_ms,
                             w->cancel);
}

static void *
call_thread (void *arg)
{
    struct work *w = arg;
    struct mcp_plane *p = w->plane;
    _cleanup_mcp_answer_ struct mcp_answer a = { 0 };
    const struct mcp_sink sink = { send_before, tell_progress, ask_client, w };
    mcp_serve (p->spec.service, NULL, &w->request, w->is_plain ? NULL : &sink, w->cancel, &a);
    pthread_mutex_lock (&p->lock);
    struct http_exchange *x = steal_ptr (&w->x);
    if (! x)
        put_event (w, mcp_answer_text (&w->request, &a, p->info));
    w->is_over = true;
    if (w->stream)
        http_stream_wake (w->stream);
    unlink_work (w);
    pthread_cond_broadcast (&p->is_idle);
    pthread_mutex_unlock (&p->lock);
    if (x)
        reply (p, x, &w->request, &a, NULL);
    return thread_over (w);
}

static struct work *
work_new (struct mcp_plane *p, struct mcp_request *r, const char *credential)
{
    struct work *w = x_new0 (struct work);
    *w = (struct work){ .plane = p, .refs = 1, .request = *r, .cancel = cancel_new () };
    w->principal = credential ? x_strdup (credential) : NULL;
    w->request.principal = w->principal;
    *r = (struct mcp_request){ 0 };
    return w;
}

static void
link_work (struct mcp_plane *p, struct work *w)
{
    w->next = p->open;
    w->link = &p->open;
    if (w->next)
        w->next->link = &w->next;
    p->open = w;
}

static bool
wants_stream (const struct http_exchange *x)
{
    const char *accept = http_exchange_header (x, "accept", NULL);
    return accept && strstr (accept, "text/event-stream");
}

/* Under the lock: what a legacy session was not told yet, for want of a stream. */
static void
tell_news (struct work *w, struct mcp_session *known)
{
    for (size_t i = 0; w->stream && i < known->news.len; i++)
        put_event (w, mcp_resource_updated_text (NULL, known->news.items[i]));
    if (w->stream)
        strv_free (&known->news);
}

static void
begin_thread (void *(*run) (void *arg), struct work *w)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init (&attributes);
    pthread_attr_setstacksize (&attributes, STACK_BYTES);
    pthread_attr_setdetachstate (&attributes, PTHREAD_CREATE_DETACHED);
    if (pthread_create (&thread, &attributes, run, w) != 0)
        run (w);
    pthread_attr_destroy (&attributes);
}

/* A tool may want of this client what it did not declare. */
static bool
may_lack (const struct mcp_plane *p, const struct mcp_request *r)
{
    return r->method->id == MCP_TOOLS_CALL && r->revision->era == MCP_MODERN &&
           (p->spec.service->asks & ~mcp_inputs_declared (r->capabilities));
}

/* Takes the request over. */
static void
begin_call (struct mcp_plane *p, struct http_exchange *x, struct mcp_request *r,
            const char *credential, struct mcp_session *known, struct mcp_peer *peer)
{
    bool is_late = wants_stream (x) && may_lack (p, r);
    pthread_mutex_lock (&p->lock);
    bool has_place = p->running < MAX_CALLS && ! p->is_stopping;
    p->running += has_place;
    pthread_mutex_unlock (&p->lock);
    if (! has_place) {
        refuse (p, x, 503, "64 calls are under way, which is the bound: try again later");
        return;
    }
    struct work *w = work_new (p, r, credential);
    w->peer = *peer;
    *peer = (struct mcp_peer){ 0 };
    bool is_held = wants_stream (x) && ! is_late ? open_stream (w, x) : http_hold (x);
    w->x = w->stream ? NULL : x;
    w->is_plain = w->x && ! is_late;
    w->is_late = is_late;
    pthread_mutex_lock (&p->lock);
    if (is_held)
        link_work (p, w);
    else
        p->running--;
    if (is_held && is_late) {
        w->refs++;
        p->running++;
    }
    if (known) {
        memcpy (w->session, known->id, sizeof w->session);
        tell_news (w, known);
    }
    pthread_mutex_unlock (&p->lock);
    if (! is_held) {
        unref_work (w);
        return;
    }
    if (is_late)
        begin_thread (late_thread, w);
    begin_thread (call_thread, w);
}

static void
begin_listening (struct mcp_plane *p, struct http_exchange *x, struct mcp_request *r,
                 const char *credential)
{
    pthread_mutex_lock (&p->lock);
    bool has_place = p->listening < MAX_LISTEN && ! p->is_stopping;
    pthread_mutex_unlock (&p->lock);
    if (! has_place) {
        refuse (p, x, 503, "64 subscriptions are open, which is the bound");
        return;
    }
    struct work *w = work_new (p, r, credential);
    w->is_listening = true;
    mcp_watched_listen (&w->watched, &p->lock, p->spec.service, &w->request);
    char *first = mcp_listen_acknowledged (p->spec.service, &w->request, &w->watched.uris);
    buf_printf (&w->out, "event: message\ndata: %s\n\n", first);
    free (first);
    pthread_mutex_lock (&p->lock);
    link_work (p, w);
    p->listening++;
    pthread_mutex_unlock (&p->lock);
    if (! open_stream (w, x)) {
        pthread_mutex_lock (&p->lock);
        unlink_work (w);
        p->listening--;
        mcp_watched_clear (&w->watched, p->spec.service);
        pthread_mutex_unlock (&p->lock);
    }
    unref_work (w); /* the stream's own is left */
}

/* --- a request --- */

static const char *
header_of (const void *ctx, const char *name)
{
    return http_exchange_header (ctx, name, NULL);
}

static bool
may_call (struct mcp_plane *p, struct http_exchange *x, const struct mcp_request *r,
          const char *credential)
{
    bool asks = p->spec.ask_tool && r->method->id == MCP_TOOLS_CALL &&
                str_eq (json_get_string (r->message.params, "name"), p->spec.ask_tool);
    asks = asks || (r->method->needs & MCP_OFFERS_TASKS);
    if (! asks || ! p->auth || door_auth_allows (p->auth, credential, MCP_SCOPE_ASK))
        return true;
    door_refuse (x, p->auth, AUTH_INSUFFICIENT_SCOPE, credential, MCP_SCOPE_ASK);
    return false;
}

/* The schema of the tool that is called, for its annotated headers. Owned, or NULL. */
static json_t *
schema_of (struct mcp_plane *p, const struct mcp_request *r)
{
    if (r->method->id != MCP_TOOLS_CALL || ! p->spec.service->tools_list)
        return NULL;
    const struct mcp_call call = { .request = r, .params = r->message.params };
    _cleanup_mcp_answer_ struct mcp_answer tools = { 0 };
    const char *name = json_get_string (r->message.params, "name");
    size_t i;
    json_t *tool;
    p->spec.service->tools_list (p->spec.service->ctx, &call, &tools);
    json_array_foreach (
        tools.result, i,
        tool) if (str_eq (json_get_string (tool, "name"),
                          name)) return json_incref (json_object_get (tool, "inputSchema"));
    return NULL;
}

/* Of a legacy session: what its next requests go by. */
static void
serve_session (struct mcp_plane *p, struct mcp_session *known, const struct mcp_request *r,
               struct mcp_answer *a)
{
    bool is_watching = r->method->id == MCP_SUBSCRIBE || r->method->id == MCP_UNSUBSCRIBE;
    if (is_watching && ! known)
        mcp_refuse (a, MCP_INVALID_PARAMS, "%s needs a session: initialize first", r->method->name);
    else if (is_watching)
        mcp_watched_serve (&known->watched, &p->lock, p->spec.service, r, a);
    else
        mcp_serve (p->spec.service, known ? &known->peer : NULL, r, NULL, NULL, a);
}

static void
serve_request (struct mcp_plane *p, struct http_exchange *x, struct mcp_request *r,
               const char *credential, struct mcp_session *known, struct mcp_peer *peer)
{
    _cleanup_mcp_answer_ struct mcp_answer a = { 0 };
    bool is_good = mcp_request_judge (r, peer, &a);
    if (! is_good && a.code == MCP_VERSION_UNSERVED)
        mcp_headers_judge_version (r, header_of, x, &a);
    if (is_good && r->revision->era == MCP_MODERN) {
        _cleanup_json_ json_t *schema = schema_of (p, r);
        is_good = mcp_headers_match (r, schema, header_of, x, &a);
    }
    if (! is_good) {
        reply (p, x, r, &a, NULL);
    } else if (! may_call (p, x, r, credential)) {
        return;
    } else if (r->method->id == MCP_LISTEN) {
        begin_listening (p, x, r, credential);
    } else if (r->method->may_wait) {
        begin_call (p, x, r, credential, known, peer);
    } else if (r->method->id == MCP_INITIALIZE) {
        struct mcp_session *fresh = mcp_session_new (&p->sessions, &p->lock, p->spec.service);
        mcp_serve (p->spec.service, &fresh->peer, r, NULL, NULL, &a);
        reply (p, x, r, &a, a.result ? fresh->id : NULL);
    } else {
        serve_session (p, known, r, &a);
        reply (p, x, r, &a, NULL);
    }
}

/* A legacy client's notice: only a cancel changes something. */
static void
on_notice (struct mcp_plane *p, const struct mcp_message *m)
{
    json_t *id = json_object_get (m->params, "requestId");
    if (! str_eq (m->method, "notifications/cancelled") || ! id)
        return;
    pthread_mutex_lock (&p->lock);
    for (struct work *w = p->open; w; w = w->next)
        if (w->request.revision->era == MCP_LEGACY &&
            json_equal ((json_t *)(uintptr_t)w->request.message.id, id))
            cancel_raise (w->cancel);
    pthread_mutex_unlock (&p->lock);
}

void
mcp_plane_serve (struct mcp_plane *p, struct http_exchange *x, const char *credential)
{
    struct mcp_request r = { 0 };
    struct mcp_peer peer = { 0 };
    size_t len;
    const char *body = http_exchange_body (x, &len);
    const char *session = http_exchange_header (x, "mcp-session-id", NULL);
    struct mcp_session *known = session ? mcp_session_find (&p->sessions, session) : NULL;
    mcp_message_read (&r.message, body ? body : "", len);
    r.principal = credential;
    if (session && ! known) {
        refuse (p, x, 404, "there is no such session: initialize anew");
    } else if (r.message.kind == MCP_NOTIFICATION || r.message.kind == MCP_RESPONSE) {
        if (r.message.kind == MCP_RESPONSE)
            mcp_outgoing_take (&p->outgoing, &r.message);
        else
            on_notice (p, &r.message);
        http_reply (x, 202, NULL, 0, NULL, 0);
    } else {
        if (known)
            peer = (struct mcp_peer){ known->peer.revision, json_incref (known->peer.capabilities),
                                      known->peer.log_level };
        else
            peer_without_session (x, &r.message, &peer);
        serve_request (p, x, &r, credential, known, &peer);
    }
    mcp_peer_clear (&peer);
    mcp_request_clear (&r);
}

/* --- changes, and the end --- */

void
mcp_plane_tell_tools (struct mcp_plane *p)
{
    pthread_mutex_lock (&p->lock);
    for (struct work *w = p->open; w; w = w->next)
        if (w->is_listening && mcp_listens_for_tools (&w->request))
            put_event (w, mcp_tools_changed_text (&w->request));
    pthread_mutex_unlock (&p->lock);
}

/* Under the lock. False: no call of that session has a stream now. */
static bool
tell_open_call (struct mcp_plane *p, const char *session, const char *uri)
{
    for (struct work *w = p->open; w; w = w->next)
        if (w->stream && ! w->is_over && str_eq (w->session, session)) {
            put_event (w, mcp_resource_updated_text (NULL, uri));
            return true;
        }
    return false;
}

void
mcp_plane_tell_resource (struct mcp_plane *p, const char *uri)
{
    pthread_mutex_lock (&p->lock);
    for (struct work *w = p->open; w; w = w->next)
        if (strv_contains (&w->watched.uris, uri))
            put_event (w, mcp_resource_updated_text (&w->request, uri));
    for (size_t i = 0; i < MCP_SESSIONS_MAX; i++) {
        struct mcp_session *one = &p->sessions.all[i];
        if (strv_contains (&one->watched.uris, uri) && ! tell_open_call (p, one->id, uri) &&
            ! strv_contains (&one->news, uri))
            strv_push (&one->news, uri);
    }
    pthread_mutex_unlock (&p->lock);
}

static void
end_listening (struct mcp_plane *p, struct work *w)
{
    _cleanup_mcp_answer_ struct mcp_answer a = { 0 };
    mcp_listen_end (&w->request, &a);
    put_event (w, mcp_answer_text (&w->request, &a, p->info));
    w->is_over = true;
}

void
mcp_plane_stop (struct mcp_plane *p)
{
    if (! p)
        return;
    mcp_outgoing_close (&p->outgoing);
    pthread_mutex_lock (&p->lock);
    p->is_stopping = true;
    for (struct work *w = p->open; w; w = w->next)
        if (w->is_listening)
            end_listening (p, w);
        else
            cancel_raise (w->cancel);
    while (p->running)
        pthread_cond_wait (&p->is_idle, &p->lock);
    pthread_mutex_unlock (&p->lock);
}

void
mcp_plane_free (struct mcp_plane *p)
{
    if (! p)
        return;
    mcp_sessions_clear (&p->sessions, &p->lock, p->spec.service);
    json_decref (p->info);
    mcp_outgoing_destroy (&p->outgoing);
    pthread_cond_destroy (&p->is_idle);
    pthread_mutex_destroy (&p->lock);
    free (p);
}
