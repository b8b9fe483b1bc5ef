/* SPDX-License-Identifier: Apache-2.0 */
#include "door/planes/mcp_plane_internal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/condition.h"
#include "door/callers/refuse.h"
#include "door/planes/plane_answer.h"
#include "mcp/headers.h"
#include "mcp/input.h"

#include <errno.h>
#include <string.h>

#define MAX_CALLS   64
#define STACK_BYTES ((size_t)1024 * 1024)
#define LATE_MS     1000

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
reply (struct mcp_plane *p, struct http_exchange *x, const struct mcp_request *r,
       const struct mcp_answer *a, const char *session)
{
    int status = a->result ? 200 : mcp_http_status (a->code, r->revision->era);
    mcp_work_reply (x, status, mcp_answer_text (r, a, p->info), session);
}

/* --- the head --- */

static bool
wants_stream (const struct http_exchange *x)
{
    const char *accept = http_exchange_header (x, "accept", NULL);
    return accept && strstr (accept, "text/event-stream");
}

bool
mcp_plane_refuse (struct mcp_plane *p, struct http_exchange *x, const char *credential)
{
    const char *origin = http_exchange_header (x, "origin", NULL);
    const char *host = http_exchange_header (x, "host", NULL);
    if (mcp_is_foreign (origin, host, p->spec.is_loopback)) {
        mcp_work_refuse (x, 403, "a page of another site may not ask");
        return true;
    }
    if (p->auth && ! door_auth_allows (p->auth, credential, MCP_SCOPE_TOOLS)) {
        door_refuse (x, p->auth, AUTH_INSUFFICIENT_SCOPE, credential, MCP_SCOPE_TOOLS);
        return true;
    }
    const char *method = http_exchange_method (x);
    const char *session = http_exchange_header (x, "mcp-session-id", NULL);
    bool is_of_session =
        session && (str_eq (method, "DELETE") || (str_eq (method, "GET") && wants_stream (x)));
    if (is_of_session || str_eq (method, "POST"))
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

/* The last of a thread: the plane may go once none runs. NULL. */
static void *
thread_over (struct work *w)
{
    struct mcp_plane *p = w->plane;
    mcp_work_unref (w);
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
    mcp_work_open_late (w);
    pthread_mutex_unlock (&p->lock);
    return thread_over (w);
}

static void
send_before (void *ctx, char *text)
{
    struct work *w = ctx;
    pthread_mutex_lock (&w->plane->lock);
    mcp_work_open_late (w);
    mcp_work_put (w, text);
    pthread_mutex_unlock (&w->plane->lock);
}

static void
tell_progress (void *ctx, double at, double total, const char *message)
{
    struct work *w = ctx;
    pthread_mutex_lock (&w->plane->lock);
    mcp_work_open_late (w);
    w->told_ms = clock_monotonic_ms ();
    mcp_work_put (w, mcp_progress_tell (&w->progress, &w->request, at, total, message));
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
        mcp_work_put (w, mcp_answer_text (&w->request, &a, p->info));
    w->is_over = true;
    if (w->stream)
        http_stream_wake (w->stream);
    mcp_work_unlink (w);
    pthread_cond_broadcast (&p->is_idle);
    pthread_mutex_unlock (&p->lock);
    if (x)
        reply (p, x, &w->request, &a, NULL);
    return thread_over (w);
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
    const struct mcp_service *s = p->spec.service;
    return r->method->id == MCP_TOOLS_CALL && r->revision->era == MCP_MODERN &&
           ((s->asks & ~mcp_inputs_declared (r->capabilities)) ||
            (s->needs_tasks && ! mcp_client_can (r, MCP_EXT_TASKS)));
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
        mcp_work_refuse (x, 503, "64 calls are under way, which is the bound: try again later");
        return;
    }
    struct work *w = mcp_work_new (p, r, credential);
    w->peer = *peer;
    *peer = (struct mcp_peer){ 0 };
    bool is_held = wants_stream (x) && ! is_late ? mcp_work_open_stream (w, x) : http_hold (x);
    w->x = w->stream ? NULL : x;
    w->is_plain = w->x && ! is_late;
    w->is_late = is_late;
    pthread_mutex_lock (&p->lock);
    if (is_held)
        mcp_work_link (w);
    else
        p->running--;
    if (is_held && is_late) {
        w->refs++;
        p->running++;
    }
    if (known) {
        memcpy (w->session, known->id, sizeof w->session);
        mcp_listen_tell_news (w, known);
    }
    pthread_mutex_unlock (&p->lock);
    if (! is_held) {
        mcp_work_unref (w);
        return;
    }
    if (is_late)
        begin_thread (late_thread, w);
    begin_thread (call_thread, w);
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
    const char *task = json_get_string (r->message.params, "taskId");
    asks = asks || ((r->method->needs & MCP_OFFERS_TASKS) &&
                    ! (task && str_starts (task, MCP_TASK_OF_CALL)));
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
serve_in_session (struct mcp_plane *p, struct mcp_session *known, const struct mcp_request *r,
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

/* The one unused for longest gives way. */
static struct mcp_session *
fresh_session (struct mcp_plane *p, const char *credential)
{
    struct mcp_session *one = mcp_session_oldest (&p->sessions);
    if (one->id[0])
        mcp_listen_forget (p, one->id);
    mcp_session_end (one, &p->lock, p->spec.service);
    mcp_session_begin (one, &p->lock, credential);
    return one;
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
        mcp_listen_begin (p, x, r, credential);
    } else if (r->method->may_wait) {
        begin_call (p, x, r, credential, known, peer);
    } else if (r->method->id == MCP_INITIALIZE) {
        struct mcp_session *fresh = fresh_session (p, credential);
        mcp_serve (p->spec.service, &fresh->peer, r, NULL, NULL, &a);
        reply (p, x, r, &a, a.result ? fresh->id : NULL);
    } else {
        serve_in_session (p, known, r, &a);
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

static void
serve_message (struct mcp_plane *p, struct http_exchange *x, const char *credential,
               struct mcp_session *known)
{
    struct mcp_request r = { 0 };
    struct mcp_peer peer = { 0 };
    size_t len;
    const char *body = http_exchange_body (x, &len);
    mcp_message_read (&r.message, body ? body : "", len);
    r.principal = credential;
    if (r.message.kind == MCP_NOTIFICATION || r.message.kind == MCP_RESPONSE) {
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

static void
end_session (struct mcp_plane *p, struct http_exchange *x, struct mcp_session *known)
{
    mcp_listen_forget (p, known->id);
    mcp_session_end (known, &p->lock, p->spec.service);
    http_reply (x, 204, NULL, 0, NULL, 0);
}

void
mcp_plane_serve (struct mcp_plane *p, struct http_exchange *x, const char *credential)
{
    const char *method = http_exchange_method (x);
    const char *session = http_exchange_header (x, "mcp-session-id", NULL);
    struct mcp_session *known =
        session ? mcp_session_find (&p->sessions, session, credential) : NULL;
    if (session && ! known)
        mcp_work_refuse (x, 404, "there is no such session: initialize anew");
    else if (str_eq (method, "GET"))
        mcp_listen_session (p, x, known);
    else if (str_eq (method, "DELETE"))
        end_session (p, x, known);
    else
        serve_message (p, x, credential, known);
}

/* --- the end --- */

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
            mcp_listen_over (w);
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
