/* SPDX-License-Identifier: Apache-2.0
 *
 * A passage is one request and its answer. States: asked (its first transfer runs, nothing was
 * answered) -> asked again (a 401 and a key that had changed since) -> answering (head: a stream is
 * open) -> over (the stream's closed). Locks: a transfer's own lock, held around our callbacks,
 * comes before passage->lock; no transfer is released while passage->lock is held.
 */
#include "net/server/gateway_door.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/json.h"
#include "base/json_write.h"
#include "net/server/http_exchange.h"
#include "net/server/http_server.h"
#include "net/server/provider_usage.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <strings.h>

#define BODY_LIMIT_BYTES  (64u << 20)
#define WAITING_MAX_BYTES (1u << 20)

struct gateway_door {
    struct gateway_door_spec spec;
    struct http_server *server;
    char *url;
    char *placeholder;
    pthread_mutex_t lock; /* a leaf; guards what is below */
    struct gateway_usage used;
    unsigned refusals;          /* of the key, since the provider last took it */
    struct passage *unanswered; /* those whose answer has not begun */
};

struct passage {
    struct passage *next, **link; /* of door->unanswered; link NULL: not in it */
    struct gateway_door *door;
    struct http_exchange *exchange; /* NULL once answered */
    struct http_header *headers;    /* of the request that leaves, the key's last; owned values */
    size_t header_count;
    char *method, *url;
    struct buf body;
    const struct key_place *place; /* where the key goes; NULL: as the gateway says */
    struct secret *key;            /* what it was keyed with */
    bool was_resent;
    struct provider_usage_reader usage;

    pthread_mutex_t lock;
    struct http_transfer *transfer; /* set once it was asked */
    struct http_stream *stream;     /* while it is open */
    struct buf waiting;             /* of the answer's body */
    size_t waiting_at;
    bool is_paused, has_ended, was_cut; /* of has_ended: by a failure */
    bool is_ending;                     /* the door closes: the transfer stays the one it is */
    bool has_stream; /* its closed frees the passage; without one the transfer's end does */
};

static void
passage_free (struct passage *p)
{
    for (size_t i = 0; i < p->header_count; i++) {
        free ((char *)(uintptr_t)p->headers[i].name);
        secret_wipe ((void *)(uintptr_t)p->headers[i].value, p->headers[i].value_len);
        free ((char *)(uintptr_t)p->headers[i].value);
    }
    free (p->headers);
    free (p->method);
    free (p->url);
    buf_free (&p->body);
    buf_free (&p->waiting);
    secret_free (p->key);
    provider_usage_free (&p->usage);
    pthread_mutex_destroy (&p->lock);
    free (p);
}

static void
list_add (struct passage *p)
{
    struct gateway_door *d = p->door;
    pthread_mutex_lock (&d->lock);
    p->next = d->unanswered;
    p->link = &d->unanswered;
    if (p->next)
        p->next->link = &p->next;
    d->unanswered = p;
    pthread_mutex_unlock (&d->lock);
}

/* False: the door's end has taken it already, and answers it. */
static bool
list_remove (struct passage *p)
{
    struct gateway_door *d = p->door;
    pthread_mutex_lock (&d->lock);
    bool is_ours = p->link != NULL;
    if (is_ours) {
        *p->link = p->next;
        if (p->next)
            p->next->link = p->link;
        p->link = NULL;
    }
    pthread_mutex_unlock (&d->lock);
    return is_ours;
}

/* --- refusals --- */

/* Both forms at once: {type, error: {type, message, code}}. */
static void
refuse (struct http_exchange *x, int status, const char *type, const char *why)
{
    struct buf body = { 0 };
    buf_printf (&body,
                "{\"type\":\"error\",\"error\":{\"type\":\"%s\",\"code\":\"%s\",\"message\":", type,
                type);
    json_append_string (&body, why, strlen (why));
    buf_puts (&body, "}}");
    const struct http_header json = { "content-type", "application/json", 16 };
    http_reply (x, status, &json, 1, body.data, body.len);
    buf_free (&body);
}

/* --- where the key goes --- */

/* A program shows its key the way its provider wants it, so the key goes where the placeholder
 * came: what names a provider before what every one may be sent. */
static const struct key_place {
    const char *header, *value;
} key_places[] = {
    { "x-api-key", "{key}" },
    { "x-goog-api-key", "{key}" },
    { "api-key", "{key}" },
    { "authorization", "Bearer {key}" },
};

/* "key=<placeholder>" in the target's query, with the mark before it; NULL: it is not there. */
static const char *
key_parameter (const char *target, const char *placeholder)
{
    const char *query = strchr (target, '?');
    _cleanup_free_ char *wanted = x_asprintf ("key=%s", placeholder);
    size_t len = strlen (wanted);
    for (const char *at = query; at; at = strchr (at + 1, '&'))
        if (strncmp (at + 1, wanted, len) == 0 && (at[1 + len] == '&' || ! at[1 + len]))
            return at;
    return NULL;
}

/* The target without such a parameter. Owned. */
static char *
target_of (const struct gateway_door *d, const struct http_exchange *x)
{
    const char *target = http_exchange_target (x), *at = key_parameter (target, d->placeholder);
    if (! at)
        return x_strdup (target);
    const char *rest = strchr (at + 1, '&');
    return x_asprintf ("%.*s%s%s", (int)(at - target), target, rest ? (const char[]){ *at, 0 } : "",
                       rest ? rest + 1 : "");
}

/* NULL: the placeholder came nowhere. */
static const struct key_place *
place_of (const struct gateway_door *d, const struct http_exchange *x)
{
    size_t len = strlen (d->placeholder);
    for (size_t i = 0; i < ARRAY_LEN (key_places); i++) {
        size_t before = (size_t)(strchr (key_places[i].value, '{') - key_places[i].value);
        const char *shown = http_exchange_header (x, key_places[i].header, NULL);
        if (shown && before && strncasecmp (shown, key_places[i].value, before) == 0)
            shown += before;
        if (shown && strlen (shown) == len && bytes_equal_ct (shown, d->placeholder, len))
            return &key_places[i];
    }
    return key_parameter (http_exchange_target (x), d->placeholder) ? &key_places[1] : NULL;
}

static const char *
header_of (const struct passage *p)
{
    return p->place ? p->place->header : gateway_auth_header (p->door->spec.gateway);
}

/* --- the request that leaves --- */

static bool
is_own_header (const char *name, const char *auth)
{
    static const char *const own[] = { "host",
                                       "connection",
                                       "content-length",
                                       "transfer-encoding",
                                       "accept-encoding",
                                       "expect",
                                       "keep-alive",
                                       "proxy-authorization",
                                       "te",
                                       "upgrade" };
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcasecmp (own[i], name) == 0)
            return true;
    for (size_t i = 0; i < ARRAY_LEN (key_places); i++)
        if (strcasecmp (key_places[i].header, name) == 0)
            return true;
    return auth && strcasecmp (auth, name) == 0;
}

static void
add_header (struct passage *p, const char *name, const char *value, size_t len)
{
    p->headers[p->header_count++] =
        (struct http_header){ x_strdup (name), x_strndup (value, len), len };
}

static void
copy_request (struct passage *p)
{
    const struct http_header *from;
    size_t count = http_exchange_headers (p->exchange, &from), len = 0;
    const char *auth = gateway_auth_header (p->door->spec.gateway);
    const char *body = http_exchange_body (p->exchange, &len);
    p->headers = x_new_array (struct http_header, count + 1);
    for (size_t i = 0; i < count; i++)
        if (! is_own_header (from[i].name, auth))
            add_header (p, from[i].name, from[i].value, from[i].value_len);
    p->method = x_strdup (http_exchange_method (p->exchange));
    _cleanup_free_ char *target = target_of (p->door, p->exchange);
    p->url = x_asprintf ("%s%s", gateway_base (p->door->spec.gateway), target);
    buf_append (&p->body, body, len);
}

static const struct http_events events;

/* Starts a transfer with this key; NULL: keyless. */
static struct http_transfer *
send_with (struct passage *p, const struct secret *rendered)
{
    const char *auth = header_of (p);
    size_t count = p->header_count;
    if (rendered && auth)
        p->headers[count++] =
            (struct http_header){ auth, secret_reveal (rendered), secret_len (rendered) };
    const struct http_request request = {
        .method = p->method,
        .url = p->url,
        .headers = p->headers,
        .header_count = count,
        .body_kind = p->body.len ? HTTP_BODY_BUFFER : HTTP_BODY_NONE,
        .body = p->body.data,
        .body_len = p->body.len,
        .uses_proxy_env = true,
    };
    return http_start (p->door->spec.http, &request, &events, p);
}

/* --- the answer, on the client's thread --- */

static ssize_t read_answer (void *ctx, char *out, size_t cap);
static void close_answer (void *ctx);

/* True when the same request is on its way with another key. */
static bool
send_again (struct passage *p)
{
    _cleanup_ (secret_freep) struct secret *rendered = NULL;
    struct secret *key = NULL;
    if (p->was_resent || ! p->key ||
        ! gateway_render_again (p->door->spec.gateway, p->place ? p->place->value : NULL, p->key,
                                &rendered, &key))
        return false;
    p->was_resent = true;
    secret_free (p->key);
    p->key = key;
    pthread_mutex_lock (&p->lock);
    struct http_transfer *before = p->transfer;
    bool is_ending = p->is_ending;
    if (! is_ending)
        p->transfer = send_with (p, rendered);
    pthread_mutex_unlock (&p->lock);
    if (! is_ending)
        http_transfer_release (before);
    return ! is_ending;
}

/* What the provider says of the key. */
static void
count_refusal (struct gateway_door *d, int status)
{
    pthread_mutex_lock (&d->lock);
    d->refusals = status == 401 ? d->refusals + 1 : 0;
    bool is_enough = d->refusals == GATEWAY_DOOR_REFUSALS;
    if (is_enough)
        d->refusals = 0;
    pthread_mutex_unlock (&d->lock);
    if (is_enough && d->spec.key_refused)
        d->spec.key_refused (d->spec.ctx);
}

static void
on_head (void *ctx, int status, const struct http_header *headers, size_t count)
{
    struct passage *p = ctx;
    if (status == 401) {
        if (send_again (p))
            return;
        if (p->was_resent)
            gateway_rejected_again (p->door->spec.gateway);
    }
    count_refusal (p->door, status);
    static const struct http_stream_source source = { .read = read_answer, .closed = close_answer };
    _cleanup_free_ struct http_header *kept = x_new_array (struct http_header, count + 1);
    size_t kept_count = 0;
    for (size_t i = 0; i < count; i++)
        if (! is_own_header (headers[i].name, NULL))
            kept[kept_count++] = headers[i];
    if (! list_remove (p))
        return;
    pthread_mutex_lock (&p->lock);
    struct http_exchange *x = p->exchange;
    p->exchange = NULL;
    p->stream = http_reply_stream (x, status, kept, kept_count, &source, p);
    p->has_stream = p->stream != NULL;
    pthread_mutex_unlock (&p->lock);
}

static bool
on_body (void *ctx, const void *data, size_t len)
{
    struct passage *p = ctx;
    pthread_mutex_lock (&p->lock);
    bool is_full = p->has_stream && p->waiting.len - p->waiting_at > WAITING_MAX_BYTES;
    p->is_paused = is_full;
    if (p->stream && ! is_full) {
        buf_append (&p->waiting, data, len);
        http_stream_wake (p->stream);
    }
    pthread_mutex_unlock (&p->lock);
    if (! is_full)
        provider_usage_feed (&p->usage, data, len);
    return ! is_full;
}

static void
count_usage (struct passage *p)
{
    provider_usage_end (&p->usage, p->body.len);
    const struct provider_usage *u = &p->usage.seen;
    if (! u->is_told && ! u->is_estimated)
        return;
    struct gateway_door *d = p->door;
    pthread_mutex_lock (&d->lock);
    d->used.estimates += u->is_estimated;
    d->used.input += u->input;
    d->used.output += u->output;
    d->used.cache_read += u->cache_read;
    d->used.cache_creation += u->cache_creation;
    d->used.answers++;
    pthread_mutex_unlock (&d->lock);
}

static void
on_end (void *ctx, enum http_failure failure, const char *detail)
{
    struct passage *p = ctx;
    count_usage (p);
    bool is_unanswered = list_remove (p);
    pthread_mutex_lock (&p->lock);
    p->has_ended = true;
    p->was_cut = failure != HTTP_OK;
    bool frees_itself = ! p->has_stream && (is_unanswered || ! p->exchange);
    struct http_transfer *transfer = p->transfer;
    if (p->stream)
        http_stream_wake (p->stream);
    pthread_mutex_unlock (&p->lock);
    if (is_unanswered) {
        _cleanup_free_ char *why = x_asprintf ("the provider cannot be reached: %s",
                                               detail ? detail : http_failure_text (failure));
        refuse (p->exchange, 502, "api_error", why);
    }
    if (! frees_itself)
        return;
    http_transfer_release (transfer);
    passage_free (p);
}

static const struct http_events events = { .head = on_head, .body = on_body, .end = on_end };

/* --- the answer, on the server's thread --- */

static ssize_t
read_answer (void *ctx, char *out, size_t cap)
{
    struct passage *p = ctx;
    pthread_mutex_lock (&p->lock);
    size_t left = p->waiting.len - p->waiting_at, n = left < cap ? left : cap;
    memcpy (out, p->waiting.data ? p->waiting.data + p->waiting_at : out, n);
    p->waiting_at += n;
    if (p->waiting_at == p->waiting.len) {
        buf_truncate (&p->waiting, 0);
        p->waiting_at = 0;
    }
    bool is_over = ! n && p->has_ended, was_cut = p->was_cut, resumes = p->is_paused;
    p->is_paused = false;
    struct http_transfer *transfer = p->transfer;
    pthread_mutex_unlock (&p->lock);
    if (resumes)
        http_transfer_resume (transfer);
    return n           ? (ssize_t)n
           : ! is_over ? HTTP_STREAM_WAIT
           : was_cut   ? HTTP_STREAM_CUT
                       : HTTP_STREAM_END;
}

/* The client has it all, or left: then the transfer is abandoned. */
static void
close_answer (void *ctx)
{
    struct passage *p = ctx;
    pthread_mutex_lock (&p->lock);
    struct http_transfer *transfer = p->transfer;
    p->stream = NULL;
    pthread_mutex_unlock (&p->lock);
    http_transfer_release (transfer); /* no callback runs after this */
    passage_free (p);
}

/* --- requests --- */

static size_t
on_request_head (void *ctx, struct http_exchange *x)
{
    (void)ctx;
    (void)x;
    return BODY_LIMIT_BYTES;
}

/* Some ask whether anybody is there before they say who they are. */
static bool
is_greeting (const struct http_exchange *x)
{
    return strcmp (http_exchange_method (x), "HEAD") == 0;
}

static void
on_request (void *ctx, struct http_exchange *x)
{
    struct gateway_door *d = ctx;
    if (is_greeting (x)) {
        http_reply (x, 200, NULL, 0, NULL, 0);
        return;
    }
    const struct key_place *place = place_of (d, x);
    if (! place) {
        refuse (x, 401, "authentication_error", "this door serves one harness of one session");
        return;
    }
    _cleanup_free_ char *why = d->spec.refuse ? d->spec.refuse (d->spec.ctx) : NULL;
    if (why) {
        refuse (x, 402, "billing_error", why);
        return;
    }
    _cleanup_ (secret_freep) struct secret *rendered = NULL;
    struct secret *key = NULL;
    if (gateway_is_header_fixed (d->spec.gateway))
        place = NULL;
    if (! gateway_render (d->spec.gateway, place ? place->value : NULL, &rendered, &key)) {
        refuse (x, 401, "authentication_error", "the gateway has no key to send");
        return;
    }
    if (! http_hold (x)) {
        secret_free (key);
        return;
    }
    struct passage *p = x_new0 (struct passage);
    pthread_mutex_init (&p->lock, NULL);
    p->door = d;
    p->exchange = x;
    p->place = place;
    p->key = key;
    copy_request (p);
    list_add (p);
    pthread_mutex_lock (&p->lock);
    p->transfer = send_with (p, rendered);
    pthread_mutex_unlock (&p->lock);
}

/* --- outside --- */

struct gateway_door *
gateway_door_new (const struct gateway_door_spec *spec, struct mur_error **err)
{
    static const struct http_server_handler handler = { .head = on_request_head,
                                                        .request = on_request };
    struct gateway_door *d = x_new0 (struct gateway_door);
    struct http_server_limits limits = http_server_default_limits;
    unsigned char secret[24];
    limits.body_bytes = BODY_LIMIT_BYTES;
    pthread_mutex_init (&d->lock, NULL);
    d->spec = *spec;
    random_bytes (secret, sizeof secret);
    _cleanup_free_ char *word = base64url_encode (secret, sizeof secret);
    d->placeholder = x_asprintf ("murmur-%s", word);
    d->server = http_server_bind ("127.0.0.1", 0, &limits, err);
    if (! d->server || ! http_server_serve (d->server, &handler, d, err)) {
        gateway_door_free (d);
        return NULL;
    }
    const char *guest = gateway_guest_endpoint (spec->gateway);
    const char *path = strchr (guest + strlen ("http://"), '/');
    d->url = x_asprintf ("http://127.0.0.1:%u%s", http_server_port (d->server), path ? path : "");
    return d;
}

unsigned
gateway_door_port (const struct gateway_door *d)
{
    return http_server_port (d->server);
}

const char *
gateway_door_url (const struct gateway_door *d)
{
    return d->url;
}

const char *
gateway_door_placeholder (const struct gateway_door *d)
{
    return d->placeholder;
}

struct gateway_usage
gateway_door_usage (struct gateway_door *d)
{
    pthread_mutex_lock (&d->lock);
    struct gateway_usage used = d->used;
    pthread_mutex_unlock (&d->lock);
    return used;
}

/* Those that wait for their provider are told that nothing comes. */
static void
end_unanswered (struct gateway_door *d)
{
    for (;;) {
        pthread_mutex_lock (&d->lock);
        struct passage *p = d->unanswered;
        pthread_mutex_unlock (&d->lock);
        if (! p || ! list_remove (p))
            return;
        pthread_mutex_lock (&p->lock);
        p->is_ending = true;
        struct http_transfer *transfer = p->transfer;
        pthread_mutex_unlock (&p->lock);
        http_transfer_release (transfer);
        refuse (p->exchange, 503, "api_error", "the session ends");
        passage_free (p);
    }
}

void
gateway_door_free (struct gateway_door *d)
{
    if (! d)
        return;
    end_unanswered (d);
    if (d->server)
        http_server_close (d->server, 0);
    pthread_mutex_destroy (&d->lock);
    free (d->url);
    free (d->placeholder);
    free (d);
}
