/* SPDX-License-Identifier: Apache-2.0
 *
 * A server as a program far away: every message is an HTTP exchange of its own, started and ended
 * by one thread, which decides what an exchange that is over means to who waits for it.
 *
 * Always true: only the server's own address is spoken to and no redirect is followed; a request
 * that may have been worked on is not sent twice; what is not understood costs the one call.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "mcp/definitions.h"
#include "net/gateway.h"
#include "net/http_fetch.h"
#include "net/oauth/oauth_token.h"
#include "net/retry_after.h"
#include "session/servers/exchange.h"
#include "session/servers/server_request.h"
#include "trace/lines/writer.h"

#include <string.h>
#include <time.h>

#define LINGER_MS   1000  /* a stream may still end by itself after its answer */
#define RESUME_MS   1000  /* unless the stream says another time */
#define RESUME_MAX  5     /* of one answer */
#define WAIT_MAX_MS 30000 /* what a server may have us wait before we ask again */
#define TRIES_MAX   3
#define BYE_MS      1000
#define SHOWN_MAX   200 /* bytes of a body in an error's text */

/* --- what others want of it --- */

static void
wake (struct mcp_server *s)
{
    pthread_cond_broadcast (&s->changed);
}

static const json_t *
schema_of (const struct mcp_server *s, const char *method, const json_t *params)
{
    const char *name = str_eq (method, "tools/call") ? json_get_string (params, "name") : NULL;
    const json_t *tool = name ? mcp_definition_find (s->setup.pinned->tools, name) : NULL;
    return json_object_get (tool, "inputSchema");
}

static void
send (struct mcp_server *s, int64_t id, const char *method, const json_t *params, char *text)
{
    struct exchange *x = exchange_new (s, id ? EXCHANGE_CALL : EXCHANGE_NOTICE, text);
    x->id = id;
    x->opens = str_eq (method, "initialize");
    for (struct pending *p = s->pending; p; p = p->next)
        if (id && p->id == id)
            x->may_repeat = p->ask->is_repeatable;
    mcp_post_headers (&s->client, method, params, schema_of (s, method, params), &x->headers);
}

/* Closing its stream is the cancel in the modern era; an older server is told. */
static void
drop (struct mcp_server *s, int64_t id, const char *reason)
{
    for (struct exchange *x = s->line.exchanges; x; x = x->next)
        if (x->id == id)
            x->state = EXCHANGE_DROPPED;
    wake (s);
    if (! s->client.revision || s->client.revision->era == MCP_MODERN)
        return;
    _cleanup_json_ json_t *params =
        json_pack ("{s:I, s:s}", "requestId", (json_int_t)id, "reason", reason);
    server_send_call (s, 0, "notifications/cancelled", params);
}

static void
listen (struct mcp_server *s)
{
    struct exchange *x;
    s->line.is_deaf = false;
    if (s->line.is_mute)
        return;
    if (s->client.revision->era == MCP_LEGACY) {
        x = exchange_new (s, EXCHANGE_LISTEN, NULL);
        mcp_post_headers (&s->client, NULL, NULL, NULL, &x->headers);
        return;
    }
    _cleanup_json_ json_t *params = mcp_client_params (
        &s->client, json_pack ("{s:{s:b}}", "notifications", "toolsListChanged", 1), 0);
    _cleanup_json_ json_t *id = json_integer (s->next_id++);
    static const char method[] = "subscriptions/listen";
    x = exchange_new (s, EXCHANGE_LISTEN, mcp_request_text (id, method, params));
    mcp_post_headers (&s->client, method, params, NULL, &x->headers);
}

/* --- what came of an exchange --- */

static struct pending *
waiter (struct exchange *x)
{
    _cleanup_json_ json_t *id = json_integer (x->id);
    return x->kind == EXCHANGE_CALL ? server_find_pending (x->server, id) : NULL;
}

/* Takes <failure> over. */
static void
fail (struct exchange *x, struct mur_error *failure)
{
    struct pending *p = waiter (x);
    x->state = EXCHANGE_DROPPED;
    if (! p) {
        mur_error_free (failure);
        return;
    }
    p->failure = failure;
    p->status = x->answer.status;
    p->is_done = true;
    pthread_cond_broadcast (&x->server->changed);
}

/* Its body as a person may read it. Owned. */
static char *
shown_body (const struct exchange_answer *a)
{
    _cleanup_free_ char *text =
        x_strndup (a->body.data ? a->body.data : "",
                   utf8_cut (a->body.data ? a->body.data : "", a->body.len, SHOWN_MAX));
    for (char *c = text; *c; c++)
        if (*c == '\n' || *c == '\r')
            *c = ' ';
    return mcp_text_shown (text);
}

static const char *
host_of (const struct mcp_server *s)
{
    const char *mark = strstr (s->setup.remote.url, "://");
    return mark ? mark + 3 : s->setup.remote.url;
}

static struct mur_error *
failure_of_transfer (const struct exchange *x)
{
    struct mur_error *e = NULL;
    const struct exchange_answer *a = &x->answer;
    bool says_more = a->failure == HTTP_INTERNAL || a->failure == HTTP_TLS_FAILED;
    mur_fail (&e, E_MCP_001, "server %s: the request to %.*s failed: %s", x->server->setup.name,
              (int)strcspn (host_of (x->server), "/?"), host_of (x->server),
              says_more && *a->detail ? a->detail : http_failure_text (a->failure));
    return e;
}

static struct mur_error *
failure_of_redirect (const struct exchange *x)
{
    struct mur_error *e = NULL;
    _cleanup_free_ char *where = mcp_text_shown (x->answer.location);
    mur_fail (&e, E_MCP_005, "server %s redirects to %.200s, which is not followed",
              x->server->setup.name, where);
    mur_hint (&e, "add it by that address when you trust it");
    return e;
}

/* The server wants more than was granted, and says what. */
static bool
wants_scope (struct exchange *x, struct oauth_challenge *c)
{
    oauth_challenge_read (x->answer.challenge, c);
    return x->answer.status == 403 && ! x->server->setup.remote.gateway && x->key && c->scope &&
           str_eq (c->error, "insufficient_scope");
}

static struct mur_error *
failure_of_access (struct exchange *x)
{
    struct mur_error *e = NULL;
    _cleanup_challenge_ struct oauth_challenge c = { 0 };
    const char *name = x->server->setup.name, *url = x->server->setup.remote.url;
    bool is_keyed = x->server->setup.remote.gateway != NULL;
    if (wants_scope (x, &c)) {
        _cleanup_free_ char *scope = mcp_text_shown (c.scope);
        mur_fail (&e, E_MCP_009, "server %s wants the scope %.300s, which was not granted", name,
                  scope);
        mur_hint (&e, "mur mcp login %s asks for it", url);
        return e;
    }
    mur_fail (&e, E_MCP_009, "server %s answered %d: %s", name, x->answer.status,
              x->answer.status == 403 ? "what was shown to it is not enough"
              : x->key                ? "what was shown to it is not accepted"
                                      : "it wants a login or a key");
    if (is_keyed)
        mur_hint (&e, "look at gateway.api_key of its entry");
    else
        mur_hint (&e, "mur mcp login %s, or put its key into gateway.api_key beside mcp.url", url);
    return e;
}

static struct mur_error *
failure_of_status (const struct exchange *x)
{
    struct mur_error *e = NULL;
    const struct exchange_answer *a = &x->answer;
    _cleanup_free_ char *said = shown_body (a);
    bool is_theirs = a->status >= 500 || a->status == 429;
    mur_fail (&e, is_theirs ? E_MCP_001 : E_MCP_005, "server %s answered %d%s%s",
              x->server->setup.name, a->status, *said ? ": " : "", said);
    return e;
}

static struct mur_error *
failure_of_body (const struct exchange *x)
{
    struct mur_error *e = NULL;
    const struct exchange_answer *a = &x->answer;
    const char *name = x->server->setup.name;
    _cleanup_free_ char *type = mcp_text_shown (a->type ? a->type : "a body of no type");
    if (a->is_too_large)
        mur_fail (&e, E_MCP_005, "server %s sent an answer of more than %zu MiB", name,
                  MCP_MESSAGE_MAX >> 20);
    else if (a->kind == MCP_BODY_OTHER && a->body.len)
        mur_fail (&e, E_MCP_005,
                  "server %s answered with %.80s and not with a message: is the "
                  "address right?",
                  name, type);
    else
        mur_fail (&e, E_MCP_005, "server %s gave no answer to the request it took", name);
    return e;
}

/* --- another try --- */

static void
again (struct exchange *x, uint64_t in_ms)
{
    x->tries++;
    x->state = EXCHANGE_DUE;
    x->due_ms = clock_monotonic_ms () + in_ms;
}

/* A stream that broke off before its answer is gone on with where it was. */
static bool
resume (struct exchange *x)
{
    struct exchange_answer *a = &x->answer;
    bool is_legacy = x->server->client.revision && x->server->client.revision->era == MCP_LEGACY;
    bool was_stream = a->status / 100 == 2 && a->kind == MCP_BODY_EVENTS;
    if (! is_legacy || ! was_stream || ! a->events.last_id.len || a->is_too_large ||
        x->resumed >= RESUME_MAX)
        return false;
    uint64_t wait_ms = a->events.retry_ms ? a->events.retry_ms : RESUME_MS;
    x->resumed++;
    free (x->last_event);
    x->last_event = x_strdup (a->events.last_id.data);
    free (x->text);
    x->text = NULL;
    again (x, wait_ms < WAIT_MAX_MS ? wait_ms : WAIT_MAX_MS);
    return true;
}

/* Nothing of it was worked on, or twice does no harm. */
static bool
repeat (struct exchange *x)
{
    const struct exchange_answer *a = &x->answer;
    uint64_t wait_ms = 0;
    if (x->tries + 1 >= TRIES_MAX || ! x->text)
        return false;
    if (a->failure == HTTP_RESET && ! a->status && x->may_repeat) {
        again (x, 100);
        return true;
    }
    if (a->status != 429 || ! a->retry_after ||
        ! retry_after_read (a->retry_after, (uint64_t)time (NULL) * 1000, &wait_ms) ||
        wait_ms > WAIT_MAX_MS)
        return false;
    again (x, wait_ms);
    return true;
}

/* A second key is tried once, a login made fresh. Not under the lock. */
static bool
has_other_key (struct exchange *x)
{
    struct gateway *g = x->server->setup.remote.gateway;
    _cleanup_secret_ struct secret *header = NULL, *fresh = NULL;
    if (! x->key)
        return false;
    if (x->tries) {
        if (g)
            gateway_rejected_again (g);
        return false;
    }
    if (g)
        return gateway_render_again (g, NULL, x->key, &header, &fresh);
    return server_credential (x->server, x->key, &header, &fresh, NULL) && fresh;
}

/* What of an answer is kept beyond this session. Not under the lock. */
static void
remember_scope (struct exchange *x)
{
    _cleanup_challenge_ struct oauth_challenge c = { 0 };
    if (wants_scope (x, &c))
        oauth_token_wants (x->server->setup.remote.url, c.scope);
}

/* --- judging --- */

/* An error that is a message, whatever id it has: some answer before they read one. */
static bool
take_error_body (struct exchange *x)
{
    struct exchange_answer *a = &x->answer;
    struct pending *p = waiter (x);
    _cleanup_mcp_message_ struct mcp_message m = { 0 };
    if (! p || a->kind != MCP_BODY_JSON || a->is_too_large)
        return false;
    mcp_message_read (&m, a->body.data ? a->body.data : "", a->body.len);
    if (m.kind != MCP_RESPONSE || ! m.error)
        return false;
    p->error = json_incref ((json_t *)(uintptr_t)m.error);
    p->status = a->status;
    p->is_done = true;
    x->state = EXCHANGE_DROPPED;
    pthread_cond_broadcast (&x->server->changed);
    return true;
}

/* The session is gone on its side: who asked may ask again in a new one. */
static void
lose_session (struct exchange *x)
{
    struct pending *p = waiter (x);
    if (p)
        p->is_unserved = true;
    server_condemn (x->server, E_MCP_001, "it has forgotten the session");
}

static void
judge_good (struct exchange *x)
{
    struct exchange_answer *a = &x->answer;
    struct mcp_server *s = x->server;
    if (a->kind == MCP_BODY_JSON && ! a->is_too_large && a->body.len)
        server_take_line (s, a->body.data, a->body.len);
    if (! waiter (x)) {
        x->state = EXCHANGE_DROPPED;
        return;
    }
    if (resume (x))
        return;
    if (a->failure != HTTP_OK && ! a->is_too_large)
        fail (x, failure_of_transfer (x));
    else
        fail (x, failure_of_body (x));
}

/* Of one that is listened to, only that it is over matters. */
static void
judge_listened (struct exchange *x)
{
    int status = x->answer.status;
    x->state = EXCHANGE_DROPPED;
    x->server->line.is_deaf = true;
    x->server->line.is_mute =
        status >= 400 || (status / 100 == 2 && x->answer.kind == MCP_BODY_OTHER);
}

/* Under the lock; the transfer is over. */
static void
judge (struct exchange *x, bool has_key)
{
    struct exchange_answer *a = &x->answer;
    int status = a->status;
    if (x->kind == EXCHANGE_LISTEN)
        judge_listened (x);
    else if (status == 404 && x->has_session)
        lose_session (x);
    else if (status == 401 && has_key)
        again (x, 0);
    else if (status == 401 || status == 403)
        fail (x, failure_of_access (x));
    else if (status / 100 == 2)
        judge_good (x);
    else if (repeat (x))
        return;
    else if (! status)
        fail (x, failure_of_transfer (x));
    else if (status / 100 == 3 && a->location)
        fail (x, failure_of_redirect (x));
    else if (! take_error_body (x))
        fail (x, failure_of_status (x));
}

/* --- the thread --- */

static void
unlink_exchange (struct exchange *x)
{
    for (struct exchange **at = &x->server->line.exchanges; *at; at = &(*at)->next)
        if (*at == x) {
            *at = x->next;
            return;
        }
}

/* The lock is given up meanwhile. */
static void
end (struct exchange *x)
{
    struct mcp_server *s = x->server;
    unlink_exchange (x);
    pthread_mutex_unlock (&s->lock);
    exchange_free (x);
    pthread_mutex_lock (&s->lock);
}

static void
start_exchange (struct exchange *x)
{
    struct mcp_server *s = x->server;
    struct mur_error *err = NULL;
    x->state = EXCHANGE_OUT;
    if (s->line.session_id && ! x->has_session) {
        strv_push (&x->headers, MCP_SESSION_HEADER);
        strv_push (&x->headers, s->line.session_id);
        x->has_session = true;
    }
    pthread_mutex_unlock (&s->lock);
    exchange_reset (x);
    bool is_out = exchange_start (x, &err);
    pthread_mutex_lock (&s->lock);
    if (! is_out)
        fail (x, err);
}

static void
settle (struct exchange *x)
{
    struct mcp_server *s = x->server;
    bool has_key = false;
    if (x->answer.status == 401 || x->answer.status == 403) {
        pthread_mutex_unlock (&s->lock);
        has_key = x->answer.status == 401 && has_other_key (x);
        remember_scope (x);
        pthread_mutex_lock (&s->lock);
    }
    if (x->state == EXCHANGE_OUT)
        judge (x, has_key);
}

/* Does what is due of one exchange; false: nothing is. *wait_ms: until something is. */
static bool
step (struct mcp_server *s, uint64_t *wait_ms)
{
    uint64_t now = clock_monotonic_ms ();
    *wait_ms = UINT64_MAX;
    for (struct exchange *x = s->line.exchanges; x; x = x->next) {
        const struct exchange_answer *a = &x->answer;
        uint64_t at = x->state == EXCHANGE_DUE ? x->due_ms
                      : a->answered_ms         ? a->answered_ms + LINGER_MS
                                               : UINT64_MAX;
        if (x->state == EXCHANGE_DROPPED || (a->answered_ms && now >= at))
            end (x);
        else if (x->state == EXCHANGE_DUE && now >= at)
            start_exchange (x);
        else if (x->state == EXCHANGE_OUT && (a->is_over || a->is_too_large))
            settle (x);
        else {
            if (at != UINT64_MAX && at - now < *wait_ms)
                *wait_ms = at - now;
            continue;
        }
        return true;
    }
    return false;
}

static void
wait_for_news (struct mcp_server *s, uint64_t wait_ms)
{
    uint64_t at = clock_monotonic_ms () + wait_ms;
    struct timespec ts = { (time_t)(at / 1000), (long)(at % 1000) * 1000000 };
    if (wait_ms == UINT64_MAX)
        pthread_cond_wait (&s->changed, &s->lock);
    else
        pthread_cond_timedwait (&s->changed, &s->lock, &ts);
}

/* A session that is over is given back, whether the server takes it or not. */
static void
say_goodbye (struct mcp_server *s)
{
    const struct server_remote *r = &s->setup.remote;
    _cleanup_secret_ struct secret *header = NULL, *key = NULL;
    struct http_header lines[2] = { { MCP_SESSION_HEADER, s->line.session_id,
                                      strlen (s->line.session_id) } };
    _cleanup_http_response_ struct http_response response = { 0 };
    size_t count = 1;
    if (server_credential (s, NULL, &header, &key, NULL) && header)
        lines[count++] =
            (struct http_header){ r->gateway ? gateway_auth_header (r->gateway) : "authorization",
                                  secret_reveal (header), secret_len (header) };
    const struct http_fetch fetch = { .request = { .method = "DELETE",
                                                   .url = r->url,
                                                   .headers = lines,
                                                   .header_count = count,
                                                   .uses_proxy_env = true },
                                      .limit_bytes = 65536,
                                      .total_timeout_ms = BYE_MS };
    (void)http_fetch (r->http, &fetch, &response, NULL, NULL);
}

static bool
has_notice (const struct mcp_server *s)
{
    const struct exchange *x = s->line.exchanges;
    while (x && x->kind != EXCHANGE_NOTICE)
        x = x->next;
    return x != NULL;
}

/* What it was to be told last, a cancel perhaps, is told. */
static void
send_notices (struct mcp_server *s)
{
    uint64_t until = clock_monotonic_ms () + BYE_MS, wait_ms, now;
    while (has_notice (s) && (now = clock_monotonic_ms ()) < until)
        if (! step (s, &wait_ms))
            wait_for_news (s, wait_ms < until - now ? wait_ms : until - now);
}

static void
finish (struct mcp_server *s)
{
    bool was_asked = ! s->io.death;
    if (was_asked)
        send_notices (s);
    while (s->line.exchanges)
        end (s->line.exchanges);
    if (was_asked && s->line.session_id) {
        cancel_raise (s->line.stopping); /* no token is made fresh for a goodbye */
        pthread_mutex_unlock (&s->lock);
        say_goodbye (s);
        pthread_mutex_lock (&s->lock);
    }
    if (! s->io.death) {
        s->io.death = x_strdup ("it was asked to end");
        s->io.death_code = E_MCP_001;
    }
    struct trace_writer *trace = s->setup.trace ? *s->setup.trace : NULL;
    if (trace && s->io.noise_lines)
        TRACE (trace, NULL, mcp_noise, .artifact = s->setup.artifact, .lines = s->io.noise_lines,
               .bytes = s->io.noise_bytes);
    if (trace)
        TRACE (trace, NULL, mcp_server_exit, .artifact = s->setup.artifact,
               .cause = was_asked ? "asked to end" : s->io.death);
    server_gone (s, was_asked);
}

static void *
pump (void *arg)
{
    struct mcp_server *s = arg;
    uint64_t wait_ms;
    pthread_mutex_lock (&s->lock);
    while (s->state == SERVER_UP)
        if (! step (s, &wait_ms))
            wait_for_news (s, wait_ms);
    finish (s);
    pthread_mutex_unlock (&s->lock);
    return NULL;
}

void
server_line_clear (struct server_line *line)
{
    free (line->session_id);
    if (line->stopping)
        cancel_unref (line->stopping);
    *line = (struct server_line){ 0 };
}

static bool
start (struct mcp_server *s, struct mur_error **err)
{
    pthread_mutex_lock (&s->lock);
    server_begin_life (s);
    server_line_clear (&s->line);
    s->line.stopping = cancel_new ();
    s->state = SERVER_UP;
    if (s->is_over) /* it was told to end meanwhile */
        server_condemn (s, E_MCP_001, "the session ends");
    pthread_mutex_unlock (&s->lock);
    if (server_start_thread (s, pump, err))
        return true;
    pthread_mutex_lock (&s->lock);
    server_gone (s, true);
    pthread_mutex_unlock (&s->lock);
    return false;
}

/* Its thread may wait for an issuer's answer. */
static void
stop (struct mcp_server *s)
{
    if (s->line.stopping)
        cancel_raise (s->line.stopping);
    wake (s);
}

const struct server_way server_by_http = {
    .start = start,
    .send = send,
    .drop = drop,
    .wake = wake,
    .kill = stop,
    .listen = listen,
};
