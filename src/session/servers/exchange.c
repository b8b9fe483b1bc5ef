/* SPDX-License-Identifier: Apache-2.0 */
#include "session/servers/exchange.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "net/gateway.h"
#include "net/oauth/oauth_token.h"

#include <string.h>

#define BODY_MAX MCP_MESSAGE_MAX

struct exchange *
exchange_new (struct mcp_server *s, enum exchange_kind kind, char *text)
{
    struct exchange *x = x_new0 (struct exchange), **end = &s->line.exchanges;
    x->server = s;
    x->kind = kind;
    x->text = text;
    while (*end)
        end = &(*end)->next;
    *end = x;
    s->way->wake (s);
    return x;
}

static void
clear_answer (struct exchange_answer *a)
{
    char *texts[] = {
        a->type, a->location, a->challenge, a->session_id, a->retry_after, a->detail
    };
    for (size_t i = 0; i < ARRAY_LEN (texts); i++)
        free (texts[i]);
    buf_free (&a->body);
    sse_parser_free (&a->events);
    *a = (struct exchange_answer){ 0 };
}

void
exchange_reset (struct exchange *x)
{
    http_transfer_release (steal_ptr (&x->transfer));
    clear_answer (&x->answer);
    secret_freep (&x->key);
    x->key = NULL;
}

void
exchange_free (struct exchange *x)
{
    exchange_reset (x);
    strv_free (&x->headers);
    free (x->last_event);
    free (x->text);
    free (x);
}

/* --- what comes back, on the client's thread --- */

/* The first of its name; challenges may come in several. */
static void
take_header (char **to, const struct http_header *h, bool is_list)
{
    _cleanup_free_ char *before = steal_ptr (to);
    if (before && is_list)
        *to = x_asprintf ("%s, %.*s", before, (int)h->value_len, h->value);
    else
        *to = before ? steal_ptr (&before) : x_strndup (h->value, h->value_len);
}

static void
on_head (void *ctx, int status, const struct http_header *headers, size_t header_count)
{
    struct exchange *x = ctx;
    struct exchange_answer *a = &x->answer;
    const struct {
        const char *name;
        char **to;
    } wanted[] = {
        { "content-type", &a->type },          { "location", &a->location },
        { "www-authenticate", &a->challenge }, { MCP_SESSION_HEADER, &a->session_id },
        { "retry-after", &a->retry_after },
    };
    pthread_mutex_lock (&x->server->lock);
    a->status = status;
    for (size_t i = 0; i < header_count; i++)
        for (size_t k = 0; k < ARRAY_LEN (wanted); k++)
            if (strcmp (headers[i].name, wanted[k].name) == 0)
                take_header (wanted[k].to, &headers[i], wanted[k].to == &a->challenge);
    a->kind = mcp_body_of (a->type);
    struct server_line *line = &x->server->line;
    if (x->opens && status / 100 == 2 && a->session_id && mcp_session_id_is_valid (a->session_id)) {
        free (line->session_id);
        line->session_id = x_strdup (a->session_id);
    }
    a->events.limit_bytes = BODY_MAX;
    pthread_mutex_unlock (&x->server->lock);
}

static bool
take_event (void *ctx, const char *id, const char *data, size_t len)
{
    struct exchange *x = ctx;
    (void)id;
    if (len)
        server_take_line (x->server, data, len);
    return x->server->state == SERVER_UP;
}

/* The waiter has its answer: what still comes is not waited for long. */
static void
see_answered (struct exchange *x)
{
    _cleanup_json_ json_t *id = json_integer (x->id);
    if (x->kind != EXCHANGE_CALL || x->answer.answered_ms || server_find_pending (x->server, id))
        return;
    x->answer.answered_ms = clock_monotonic_ms ();
    x->server->way->wake (x->server);
}

static bool
on_body (void *ctx, const void *data, size_t len)
{
    struct exchange *x = ctx;
    struct exchange_answer *a = &x->answer;
    pthread_mutex_lock (&x->server->lock);
    bool is_stream = a->status / 100 == 2 && a->kind == MCP_BODY_EVENTS;
    if (a->is_too_large || a->is_over || x->state != EXCHANGE_OUT) {
        /* nobody reads it */
    } else if (is_stream) {
        if (! sse_feed (&a->events, data, len, take_event, x) && x->server->state == SERVER_UP)
            a->is_too_large = true;
        see_answered (x);
    } else if (a->body.len + len > BODY_MAX) {
        a->is_too_large = true;
    } else {
        buf_append (&a->body, data, len);
    }
    if (a->is_too_large)
        x->server->way->wake (x->server);
    pthread_mutex_unlock (&x->server->lock);
    return true;
}

static void
on_end (void *ctx, enum http_failure failure, const char *detail)
{
    struct exchange *x = ctx;
    pthread_mutex_lock (&x->server->lock);
    x->answer.failure = failure;
    free (x->answer.detail);
    x->answer.detail = x_strdup (detail ? detail : "");
    x->answer.is_over = true;
    x->server->way->wake (x->server);
    pthread_mutex_unlock (&x->server->lock);
}

/* --- sending --- */

#define HEADERS_MAX 64

struct head {
    struct http_header lines[HEADERS_MAX];
    size_t count;
};

static void
add (struct head *h, const char *name, const char *value)
{
    if (h->count < HEADERS_MAX)
        h->lines[h->count++] = (struct http_header){ name, value, strlen (value) };
}

bool
server_credential (struct mcp_server *s, const struct secret *refused, struct secret **header,
                   struct secret **key, struct mur_error **err)
{
    const struct server_remote *r = &s->setup.remote;
    const struct oauth_asker asker = { r->url, NULL, r->http, s->line.stopping };
    _cleanup_error_ struct mur_error *why = NULL;
    if (r->gateway)
        return gateway_render (r->gateway, NULL, header, key) ||
               mur_fail (err, E_MCP_009, "server %s: its key cannot be read now", s->setup.name);
    *key = oauth_token_get (&asker, refused, &why);
    if (why)
        return mur_propagate (err, steal_ptr (&why)) ||
               mur_context (err, "server %s", s->setup.name);
    if (! *key)
        return true;
    _cleanup_buf_ struct buf line = { 0 };
    buf_printf (&line, "Bearer %s", secret_reveal (*key));
    *header = secret_new (line.data, line.len);
    secret_wipe (line.data, line.len);
    if (r->redactor)
        redactor_add (r->redactor, *key);
    return true;
}

bool
exchange_start (struct exchange *x, struct mur_error **err)
{
    static const struct http_events events = { .head = on_head, .body = on_body, .end = on_end };
    const struct server_remote *r = &x->server->setup.remote;
    _cleanup_secret_ struct secret *header = NULL;
    struct head h = { .count = 0 };
    if (! server_credential (x->server, NULL, &header, &x->key, err))
        return false;
    add (&h, "accept", x->text ? "application/json, text/event-stream" : "text/event-stream");
    if (x->text)
        add (&h, "content-type", "application/json");
    if (header)
        add (&h, r->gateway ? gateway_auth_header (r->gateway) : "authorization",
             secret_reveal (header));
    for (size_t i = 0; i + 1 < x->headers.len; i += 2)
        add (&h, x->headers.items[i], x->headers.items[i + 1]);
    if (x->last_event)
        add (&h, "last-event-id", x->last_event);
    const struct http_request request = {
        .method = x->text ? "POST" : "GET",
        .url = r->url,
        .headers = h.lines,
        .header_count = h.count,
        .body_kind = x->text ? HTTP_BODY_BUFFER : HTTP_BODY_NONE,
        .body = x->text,
        .body_len = x->text ? strlen (x->text) : 0,
        .uses_proxy_env = true,
    };
    x->transfer = http_start (r->http, &request, &events, x);
    return true;
}
