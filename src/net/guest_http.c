/* SPDX-License-Identifier: Apache-2.0
 *
 * An exchange is one request of a guest. Through the gateway its body is collected first, because a
 * 401 may have to be answered by sending the same bytes again; otherwise it streams. Locks: a
 * transfer's own lock (held around our callbacks) comes before exchange->lock, so a transfer is
 * never released while exchange->lock is held.
 */
#include "net/guest_http.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "net/retry_after.h"
#include "net/url.h"

#include <ctype.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>

#define GATEWAY_BODY_LIMIT ((size_t)64 << 20)

struct guest_http {
    struct guest_http_spec spec;
    pthread_mutex_t lock;
    struct guest_http_observation seen;
};

struct exchange {
    struct guest_http *guest;
    struct guest_http_reply *reply;
    bool is_gateway;
    char *method;
    char *url;
    struct http_header *headers; /* owned strings */
    size_t header_count;
    size_t announced_len; /* content-length, or HTTP_UNKNOWN_LENGTH */
    uint64_t connect_timeout_ms, first_byte_timeout_ms, between_bytes_timeout_ms;

    pthread_mutex_t lock;
    struct http_transfer *transfer; /* NULL until it is sent */
    bool is_released;
    struct buf body; /* gateway: the whole of it */
    bool is_body_too_large;
    struct secret *key; /* gateway: what this request was keyed with */
    bool was_resent;
    bool has_head;
    void *mark; /* of whoever looks on */
};

/* The exchange came to nothing, or broke off. */
static void
end_reply (struct exchange *x, enum guest_http_error error)
{
    if (x->mark && error != GUEST_HTTP_OK)
        x->guest->spec.watch->failed (x->mark, error);
    guest_http_reply_end (x->reply, error);
}

struct guest_http *
guest_http_new (const struct guest_http_spec *spec)
{
    struct guest_http *g = x_new0 (struct guest_http);
    g->spec = *spec;
    pthread_mutex_init (&g->lock, NULL);
    return g;
}

void
guest_http_free (struct guest_http *g)
{
    if (! g)
        return;
    pthread_mutex_destroy (&g->lock);
    free (g);
}

void
guest_http_observe (struct guest_http *g, struct guest_http_observation *out)
{
    pthread_mutex_lock (&g->lock);
    *out = g->seen;
    pthread_mutex_unlock (&g->lock);
}

/* --- what is seen of an answer --- */

static bool
read_digits (const char *text, uint64_t *value)
{
    *value = 0;
    if (! isdigit ((unsigned char)*text))
        return false;
    for (; isdigit ((unsigned char)*text); text++)
        if (*value < UINT64_MAX / 20)
            *value = *value * 10 + (uint64_t)(*text - '0');
    return *text == '\0';
}

static const char *
find_header (const struct http_header *headers, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp (headers[i].name, name) == 0)
            return headers[i].value;
    return NULL;
}

static bool
read_retry_after (const struct http_header *headers, size_t count, uint64_t *wait_ms)
{
    const char *text = find_header (headers, count, "retry-after-ms");
    if (text && retry_after_read_ms (text, wait_ms))
        return true;
    text = find_header (headers, count, "retry-after");
    return text && retry_after_read (text, clock_unix_ms (), wait_ms);
}

static void
see_head (struct exchange *x, int status, const struct http_header *headers, size_t count,
          bool is_rejected)
{
    struct guest_http_observation seen = { .status = status,
                                           .is_credential_rejected = is_rejected };
    seen.has_retry_after = read_retry_after (headers, count, &seen.retry_after_ms);
    pthread_mutex_lock (&x->guest->lock);
    seen.requests = x->guest->seen.requests + 1;
    x->guest->seen = seen;
    pthread_mutex_unlock (&x->guest->lock);
}

static void
see_failure (struct exchange *x, enum http_failure failure)
{
    pthread_mutex_lock (&x->guest->lock);
    struct guest_http_observation *seen = &x->guest->seen;
    if (! x->has_head)
        *seen = (struct guest_http_observation){ .requests = seen->requests + 1 };
    seen->failure = failure;
    pthread_mutex_unlock (&x->guest->lock);
}

static const enum guest_http_error error_of[] = {
    [HTTP_OK] = GUEST_HTTP_OK,
    [HTTP_DENIED] = GUEST_HTTP_DENIED,
    [HTTP_DNS_FAILED] = GUEST_HTTP_DNS_ERROR,
    [HTTP_REFUSED] = GUEST_HTTP_CONNECTION_REFUSED,
    [HTTP_RESET] = GUEST_HTTP_CONNECTION_TERMINATED,
    [HTTP_CONNECT_TIMEOUT] = GUEST_HTTP_CONNECTION_TIMEOUT,
    [HTTP_TLS_FAILED] = GUEST_HTTP_TLS_ERROR,
    [HTTP_NO_TLS] = GUEST_HTTP_TLS_ERROR,
    [HTTP_NO_HTTP] = GUEST_HTTP_INTERNAL_ERROR,
    [HTTP_LARGE_HEAD] = GUEST_HTTP_INTERNAL_ERROR,
    [HTTP_UNTRUSTED] = GUEST_HTTP_TLS_ERROR,
    [HTTP_WRONG_NAME] = GUEST_HTTP_TLS_ERROR,
    [HTTP_EXPIRED] = GUEST_HTTP_TLS_ERROR,
    [HTTP_NO_AUTHORITIES] = GUEST_HTTP_TLS_ERROR,
    [HTTP_INCOMPLETE] = GUEST_HTTP_RESPONSE_INCOMPLETE,
    [HTTP_RESPONSE_TIMEOUT] = GUEST_HTTP_RESPONSE_TIMEOUT,
    [HTTP_INTERNAL] = GUEST_HTTP_INTERNAL_ERROR,
};

/* --- the transfer's events --- */

static bool try_another_key (struct exchange *x);

static void
on_head (void *ctx, int status, const struct http_header *headers, size_t header_count)
{
    struct exchange *x = ctx;
    bool is_keyed_refusal = x->is_gateway && status == 401 && x->key;
    if (is_keyed_refusal && ! x->was_resent && try_another_key (x))
        return; /* x may be gone: nothing of it is touched any more */
    if (is_keyed_refusal && x->was_resent)
        gateway_rejected_again (x->guest->spec.gateway);
    if (x->is_gateway)
        see_head (x, status, headers, header_count, is_keyed_refusal);
    x->has_head = true;
    struct guest_http_header *lines = x_new_array (struct guest_http_header, header_count + 1);
    for (size_t i = 0; i < header_count; i++)
        lines[i] =
            (struct guest_http_header){ headers[i].name, headers[i].value, headers[i].value_len };
    if (x->mark)
        x->guest->spec.watch->head (x->mark, status, headers, header_count);
    guest_http_reply_head (x->reply, status, lines, header_count);
    free (lines);
}

static bool
on_body (void *ctx, const void *data, size_t len)
{
    struct exchange *x = ctx;
    bool is_taken = guest_http_reply_body (x->reply, data, len);
    if (is_taken && x->mark)
        x->guest->spec.watch->body (x->mark, data, len);
    return is_taken;
}

static void
on_ready (void *ctx)
{
    struct exchange *x = ctx;
    guest_http_reply_ready (x->reply);
}

static void
on_end (void *ctx, enum http_failure failure, const char *detail)
{
    (void)detail;
    struct exchange *x = ctx;
    if (x->is_gateway && failure != HTTP_OK)
        see_failure (x, failure);
    end_reply (x, error_of[failure]);
}

static const struct http_events events = {
    .head = on_head, .body = on_body, .ready = on_ready, .end = on_end
};

/* --- sending --- */

static struct http_request
request_of (const struct exchange *x)
{
    return (struct http_request){
        .method = x->method,
        .url = x->url,
        .headers = x->headers,
        .header_count = x->header_count,
        .connect_timeout_ms = x->connect_timeout_ms,
        .first_byte_timeout_ms = x->first_byte_timeout_ms,
        .between_bytes_timeout_ms = x->between_bytes_timeout_ms,
    };
}

/* With exchange->lock held. The guest's own lines of the auth header's name were left out when the
 * exchange was made. */
static void
send_keyed (struct exchange *x, const struct secret *header)
{
    struct gateway *gateway = x->guest->spec.gateway;
    _cleanup_free_ struct http_header *lines =
        x_new_array (struct http_header, x->header_count + 1);
    if (x->header_count)
        memcpy (lines, x->headers, x->header_count * sizeof *lines);
    struct http_request request = request_of (x);
    request.headers = lines;
    request.uses_proxy_env = true;
    if (header)
        lines[request.header_count++] = (struct http_header){
            gateway_auth_header (gateway),
            secret_reveal (header),
            secret_len (header),
        };
    if (x->body.len) {
        request.body_kind = HTTP_BODY_BUFFER;
        request.body = x->body.data;
        request.body_len = x->body.len;
    }
    x->transfer = http_start (x->guest->spec.client, &request, &events, x);
}

static void
send_through_gateway (struct exchange *x)
{
    _cleanup_secret_ struct secret *header = NULL;
    struct secret *key = NULL;
    bool has_key = gateway_render (x->guest->spec.gateway, NULL, &header, &key);
    pthread_mutex_lock (&x->lock);
    x->key = key;
    bool is_sent = has_key && ! x->is_released;
    if (is_sent)
        send_keyed (x, header);
    pthread_mutex_unlock (&x->lock);
    if (! has_key) {
        see_failure (x, HTTP_INTERNAL);
        end_reply (x, GUEST_HTTP_INTERNAL_ERROR);
    }
}

/* After a 401, inside the first transfer's callback: when the key has changed, the same bytes go
 * out once more and the first answer is forgotten. False: the answer stands. */
static bool
try_another_key (struct exchange *x)
{
    _cleanup_secret_ struct secret *header = NULL;
    struct secret *key = NULL;
    if (! gateway_render_again (x->guest->spec.gateway, NULL, x->key, &header, &key))
        return false;
    pthread_mutex_lock (&x->lock);
    if (x->is_released) {
        pthread_mutex_unlock (&x->lock);
        secret_free (key);
        return true;
    }
    struct http_transfer *refused = x->transfer;
    secret_free (x->key);
    x->key = key;
    x->was_resent = true;
    send_keyed (x, header);
    pthread_mutex_unlock (&x->lock);
    http_transfer_release (refused);
    return true;
}

/* With exchange->lock held. */
static void
send_streaming (struct exchange *x, bool has_body)
{
    struct http_request request = request_of (x);
    if (has_body) {
        request.body_kind = HTTP_BODY_STREAM;
        request.body_len = x->announced_len;
    }
    x->transfer = http_start (x->guest->spec.client, &request, &events, x);
}

/* --- admission --- */

static char *
target_url (const char *base, const char *path)
{
    const char *slash = path && *path == '/' ? "" : "/";
    return x_asprintf ("%s%s%s", base, slash, path ? path : "");
}

#define FORMATION_DOMAIN "formation.invalid"

static bool
is_formation_host (const char *host)
{
    return strcmp (host, FORMATION_DOMAIN) == 0 || str_ends (host, "." FORMATION_DOMAIN);
}

/* A member by its virtual address. Every way to fail looks the same: who the members are is
 * nobody's business. */
static char *
admit_peer (const struct guest_http_spec *spec, const struct guest_http_request *request,
            const struct authority *to, struct guest_peer *peer)
{
    size_t suffix = strlen ("." FORMATION_DOMAIN), len = strlen (to->host);
    if (! spec->find_peer || strcmp (request->scheme, "http") != 0 || to->port != URL_NO_PORT ||
        to->has_userinfo || len <= suffix || strlen (request->authority) != len)
        return NULL;
    _cleanup_free_ char *name = x_strndup (to->host, len - suffix);
    if (strchr (name, '.') || ! spec->find_peer (spec->peer_ctx, name, peer))
        return NULL;
    if (! spec->allow || ! allow_list_matches_authority (spec->allow, "http", peer->asked_for))
        return NULL;
    return target_url (peer->base, request->path_with_query);
}

static void
peer_clear (struct guest_peer *peer)
{
    free (peer->base);
    free (peer->asked_for);
    secret_free (peer->token);
    *peer = (struct guest_peer){ 0 };
}

/* Where the request goes, or NULL: denied. The order is containment.md 3.2. */
static char *
admit (struct guest_http *g, const struct guest_http_request *request, bool *is_gateway,
       struct guest_peer *peer)
{
    const struct guest_http_spec *spec = &g->spec;
    if (spec->gateway && gateway_is_addressed (request->scheme, request->authority)) {
        *is_gateway = true;
        bool is_admitted = ! gateway_is_metered (spec->gateway) ||
                           (spec->is_admitted && spec->is_admitted (spec->ctx));
        return is_admitted ? target_url (gateway_base (spec->gateway), request->path_with_query)
                           : NULL;
    }
    if (! request->authority || ! request->scheme)
        return NULL;
    bool is_known_scheme =
        strcmp (request->scheme, "http") == 0 || strcmp (request->scheme, "https") == 0;
    _cleanup_authority_ struct authority to = { 0 };
    if (! is_known_scheme || authority_parse (request->authority, strlen (request->authority), &to))
        return NULL;
    if (is_formation_host (to.host))
        return admit_peer (spec, request, &to, peer);
    if (! spec->allow ||
        ! allow_list_matches_authority (spec->allow, request->scheme, request->authority)) {
        if (spec->allow)
            allow_tell_refused (spec->allow, to.host,
                                to.port == URL_NO_PORT ? url_default_port (request->scheme)
                                                       : to.port);
        return NULL;
    }
    _cleanup_free_ char *base = to.port == URL_NO_PORT
                                    ? x_asprintf ("%s://%s", request->scheme, to.host)
                                    : x_asprintf ("%s://%s:%d", request->scheme, to.host, to.port);
    return target_url (base, request->path_with_query);
}

static void
add_header (struct exchange *x, const char *name, const char *value, size_t len)
{
    x->headers[x->header_count++] = (struct http_header){
        .name = x_strdup (name),
        .value = x_memdup (value, len),
        .value_len = len,
    };
}

/* What a guest may not say of itself to another member. */
static bool
is_runtimes_own (const char *name)
{
    static const char *const names[] = { "authorization", "x-murmur-task-origin",
                                         "x-murmur-task-trust" };
    for (size_t i = 0; i < ARRAY_LEN (names); i++)
        if (strcasecmp (names[i], name) == 0)
            return true;
    return strncasecmp (name, "x-murmur-task-", strlen ("x-murmur-task-")) == 0;
}

static void
add_peer_headers (struct exchange *x, const struct guest_peer *peer)
{
    char *bearer = x_asprintf ("Bearer %s", secret_reveal (peer->token));
    add_header (x, "authorization", bearer, strlen (bearer));
    secret_wipe (bearer, strlen (bearer));
    free (bearer);
    add_header (x, "x-murmur-task-origin", "peer", strlen ("peer"));
    add_header (x, "x-murmur-task-trust", peer->trust, strlen (peer->trust));
}

static void
copy_headers (struct exchange *x, const struct guest_http_request *request,
              const struct guest_peer *peer)
{
    const char *auth_header = x->is_gateway ? gateway_auth_header (x->guest->spec.gateway) : NULL;
    x->headers = x_new_array (struct http_header, request->header_count + 4);
    x->announced_len = HTTP_UNKNOWN_LENGTH;
    for (size_t i = 0; i < request->header_count; i++) {
        const struct guest_http_header *h = &request->headers[i];
        if ((auth_header && strcasecmp (h->name, auth_header) == 0) ||
            (peer->base && is_runtimes_own (h->name)))
            continue;
        _cleanup_free_ char *value = x_strndup (h->value, h->value_len);
        uint64_t len;
        if (strcasecmp (h->name, "content-length") == 0 && read_digits (value, &len))
            x->announced_len = len;
        add_header (x, h->name, h->value, h->value_len);
    }
    if (peer->base)
        add_peer_headers (x, peer);
}

static void
exchange_free (struct exchange *x)
{
    for (size_t i = 0; i < x->header_count; i++) {
        free ((char *)x->headers[i].name);
        secret_wipe ((char *)x->headers[i].value, x->headers[i].value_len);
        free ((char *)x->headers[i].value);
    }
    free (x->headers);
    free (x->method);
    free (x->url);
    buf_free (&x->body);
    secret_free (x->key);
    pthread_mutex_destroy (&x->lock);
    free (x);
}

/* --- the handler --- */

static void *
exchange_start (void *ctx, const struct guest_http_request *request, struct guest_http_reply *reply,
                enum guest_http_error *refused)
{
    struct guest_http *g = ctx;
    bool is_gateway = false;
    _cleanup_ (peer_clear) struct guest_peer peer = { 0 };
    char *url = admit (g, request, &is_gateway, &peer);
    const struct guest_http_watch *watch = g->spec.watch;
    if (! url) {
        if (watch)
            watch->ended (watch->began (g->spec.watch_ctx, request, true));
        *refused = GUEST_HTTP_DENIED;
        return NULL;
    }
    struct exchange *x = x_new0 (struct exchange);
    pthread_mutex_init (&x->lock, NULL);
    x->guest = g;
    x->reply = reply;
    x->is_gateway = is_gateway;
    x->url = url;
    x->method = x_strdup (request->method);
    x->connect_timeout_ms = request->connect_timeout_ms;
    x->first_byte_timeout_ms = request->first_byte_timeout_ms;
    x->between_bytes_timeout_ms = request->between_bytes_timeout_ms;
    copy_headers (x, request, &peer);
    x->mark = watch ? watch->began (g->spec.watch_ctx, request, false) : NULL;
    return x;
}

static bool
exchange_body (void *exchange, const void *data, size_t len)
{
    struct exchange *x = exchange;
    bool taken = true;
    pthread_mutex_lock (&x->lock);
    if (x->is_gateway) {
        x->is_body_too_large = x->is_body_too_large || x->body.len + len > GATEWAY_BODY_LIMIT;
        if (! x->is_body_too_large)
            buf_append (&x->body, data, len);
    } else {
        if (! x->transfer)
            send_streaming (x, true);
        taken = http_transfer_send (x->transfer, data, len);
    }
    if (taken && x->mark)
        x->guest->spec.watch->sent (x->mark, data, len);
    pthread_mutex_unlock (&x->lock);
    return taken;
}

static void
exchange_body_end (void *exchange, bool is_complete)
{
    struct exchange *x = exchange;
    if (x->is_gateway) {
        if (is_complete && ! x->is_body_too_large)
            send_through_gateway (x);
        else
            end_reply (x, GUEST_HTTP_INTERNAL_ERROR);
        return;
    }
    pthread_mutex_lock (&x->lock);
    bool is_sent = x->transfer != NULL;
    bool is_short = ! is_sent && x->announced_len != HTTP_UNKNOWN_LENGTH && x->announced_len > 0;
    if (is_sent)
        http_transfer_send_end (x->transfer, is_complete);
    else if (is_complete && ! is_short)
        send_streaming (x, false);
    pthread_mutex_unlock (&x->lock);
    if (! is_sent && (! is_complete || is_short))
        end_reply (x, GUEST_HTTP_INTERNAL_ERROR);
}

static void
exchange_resume (void *exchange)
{
    struct exchange *x = exchange;
    pthread_mutex_lock (&x->lock);
    if (x->transfer)
        http_transfer_resume (x->transfer);
    pthread_mutex_unlock (&x->lock);
}

static void
exchange_cancel (void *exchange)
{
    struct exchange *x = exchange;
    pthread_mutex_lock (&x->lock);
    x->is_released = true;
    struct http_transfer *transfer = steal_ptr (&x->transfer);
    pthread_mutex_unlock (&x->lock);
    http_transfer_release (transfer);
    if (x->mark)
        x->guest->spec.watch->ended (x->mark);
    exchange_free (x);
}

const struct guest_http_handler guest_http_handler = {
    .start = exchange_start,
    .body = exchange_body,
    .body_end = exchange_body_end,
    .resume = exchange_resume,
    .cancel = exchange_cancel,
};
