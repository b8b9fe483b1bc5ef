/* SPDX-License-Identifier: Apache-2.0 */
#include "net/oauth/oauth_ask.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/digest.h"
#include "net/http_fetch.h"
#include "net/url.h"

#include <string.h>
#include <strings.h>

#define ANSWER_MAX   ((size_t)262144)
#define TIMEOUT_MS   15000
#define TOKEN_MAX    65536 /* bytes of a token */
#define LIFETIME_MAX ((uint64_t)10 * 365 * 86400)

static bool
is_named (const struct oauth_asker *a, const char *url)
{
    return a->named && url_same_origin (a->named, url);
}

/* Of another host than the server's and named by nobody we trust. */
static bool
is_a_strangers (const struct oauth_asker *a, const char *url)
{
    _cleanup_url_ struct url u = { 0 }, s = { 0 };
    bool is_own = ! url_parse (url, &u) && ! url_parse (a->server, &s) &&
                  (str_eq (u.authority.host, s.authority.host) ||
                   (host_is_loopback (u.authority.host) && host_is_loopback (s.authority.host)));
    return ! is_own && ! is_named (a, url);
}

static bool
ask (const struct oauth_asker *a, struct http_request *request, struct http_response *out,
     struct mur_error **err)
{
    const char *fault =
        oauth_url_fault (request->url, is_named (a, request->url) ? request->url : a->server);
    if (fault)
        return oauth_fail (err, "%.200s, which the login leads to, %s", request->url, fault);
    request->uses_proxy_env = true;
    request->is_public_only = is_a_strangers (a, request->url);
    const struct http_fetch fetch = { .request = *request,
                                      .limit_bytes = ANSWER_MAX,
                                      .total_timeout_ms = TIMEOUT_MS,
                                      .cancel = a->cancel };
    _cleanup_error_ struct mur_error *why = NULL;
    return http_fetch (a->http, &fetch, out, NULL, &why) ||
           oauth_fail (err, "the login to %s: %s", a->server, why->message);
}

static json_t *
object_of (const struct http_response *r)
{
    json_t *o = json_loadb (r->body.data ? r->body.data : "", r->body.len, 0, NULL);
    if (json_is_object (o))
        return o;
    json_decref (o);
    return NULL;
}

/* --- metadata, registration, challenge --- */

json_t *
oauth_ask_metadata (const struct oauth_asker *a, const char *url, struct mur_error **err)
{
    static const struct http_header headers[] = { { "accept", "application/json", 16 } };
    _cleanup_http_response_ struct http_response r = { 0 };
    struct http_request request = {
        .method = "GET", .url = url, .headers = headers, .header_count = ARRAY_LEN (headers)
    };
    if (! ask (a, &request, &r, err))
        return NULL;
    if (r.status >= 400 && r.status < 500)
        return NULL;
    json_t *o = r.status == 200 ? object_of (&r) : NULL;
    if (! o)
        oauth_fail (err, "the login to %s: %.200s answered %d%s", a->server, url, r.status,
                    r.status == 200 ? ", and not with a JSON object" : "");
    return o;
}

static bool
fail_answer (const struct oauth_asker *a, const char *url, const struct http_response *r,
             struct mur_error **err)
{
    _cleanup_json_ json_t *o = object_of (r);
    const char *error = json_get_string (o, "error");
    const char *more = json_get_string (o, "error_description");
    return oauth_fail (err, "the login to %s: %.200s answered %d%s%.80s%s%.300s", a->server, url,
                       r->status, error ? ": " : "", error ? error : "", more ? ": " : "",
                       more ? more : "");
}

json_t *
oauth_ask_json (const struct oauth_asker *a, const char *url, const json_t *body,
                struct mur_error **err)
{
    static const struct http_header headers[] = { { "accept", "application/json", 16 },
                                                  { "content-type", "application/json", 16 } };
    _cleanup_free_ char *text = json_text (body, JSON_TEXT_ORDERED);
    _cleanup_http_response_ struct http_response r = { 0 };
    struct http_request request = { .method = "POST",
                                    .url = url,
                                    .headers = headers,
                                    .header_count = ARRAY_LEN (headers),
                                    .body_kind = HTTP_BODY_BUFFER,
                                    .body = text,
                                    .body_len = strlen (text) };
    if (! ask (a, &request, &r, err))
        return NULL;
    json_t *o = r.status == 200 || r.status == 201 ? object_of (&r) : NULL;
    if (! o)
        fail_answer (a, url, &r, err);
    return o;
}

bool
oauth_ask_challenge (const struct oauth_asker *a, struct oauth_challenge *out, int *status,
                     struct mur_error **err)
{
    static const char body[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
    static const char accept[] = "application/json, text/event-stream";
    static const struct http_header headers[] = { { "accept", accept, sizeof accept - 1 },
                                                  { "content-type", "application/json", 16 } };
    _cleanup_http_response_ struct http_response r = { 0 };
    struct http_request request = { .method = "POST",
                                    .url = a->server,
                                    .headers = headers,
                                    .header_count = ARRAY_LEN (headers),
                                    .body_kind = HTTP_BODY_BUFFER,
                                    .body = body,
                                    .body_len = sizeof body - 1 };
    if (! ask (a, &request, &r, err))
        return false;
    _cleanup_free_ char *all = http_response_joined (&r, "www-authenticate");
    oauth_challenge_read (all, out);
    *status = r.status;
    return true;
}

/* --- tokens --- */

static struct secret *
secret_of (const json_t *o, const char *key)
{
    const char *text = json_get_string (o, key);
    size_t len = text ? strlen (text) : 0;
    if (! len || len > TOKEN_MAX)
        return NULL;
    for (size_t i = 0; i < len; i++)
        if (text[i] < 0x21 || text[i] > 0x7e)
            return NULL;
    return secret_new (text, len);
}

static bool
take_token (const json_t *o, struct oauth_grant *g, struct mur_error **err)
{
    const char *type = json_get_string (o, "token_type"), *scope = json_get_string (o, "scope");
    struct secret *access = secret_of (o, "access_token");
    struct secret *refresh = secret_of (o, "refresh_token");
    uint64_t seconds = 0;
    if (! access || (type && strcasecmp (type, "Bearer") != 0)) {
        secret_free (access);
        secret_free (refresh);
        return oauth_fail (err, "%.200s gave no bearer token that a header can carry",
                           g->token_endpoint);
    }
    secret_free (g->access_token);
    g->access_token = access;
    if (refresh) { /* else the one we have stays good */
        secret_free (g->refresh_token);
        g->refresh_token = refresh;
    }
    if (scope) {
        free (g->scope);
        g->scope = x_strdup (scope);
    }
    if (! json_get_u64 (o, "expires_in", &seconds) || seconds > LIFETIME_MAX)
        seconds = 0;
    g->lifetime_ms = seconds * 1000;
    g->expires_ms = seconds ? clock_unix_ms () + g->lifetime_ms : 0;
    return true;
}

/* Who asks: in the form, or in a header. *header: owned by the caller. */
static void
add_client (const struct oauth_grant *g, struct buf *form, char **header)
{
    if (! g->client_secret || ! g->is_basic)
        oauth_form_add (form, "client_id", g->client_id);
    if (g->client_secret && ! g->is_basic)
        oauth_form_add (form, "client_secret", secret_reveal (g->client_secret));
    if (! g->client_secret || ! g->is_basic)
        return;
    _cleanup_buf_ struct buf id = { 0 }, key = { 0 };
    oauth_form_add (&id, "", g->client_id);
    oauth_form_add (&key, "", secret_reveal (g->client_secret));
    _cleanup_free_ char *pair = x_asprintf ("%s:%s", id.data + 1, key.data + 1);
    _cleanup_free_ char *encoded = base64_encode (pair, strlen (pair));
    *header = x_asprintf ("Basic %s", encoded);
    secret_wipe (pair, strlen (pair));
    secret_wipe (key.data, key.len);
}

static bool
post_form (const struct oauth_asker *a, const char *url, const struct oauth_grant *g,
           struct buf *form, struct http_response *r, struct mur_error **err)
{
    _cleanup_free_ char *client = NULL;
    static const char type[] = "application/x-www-form-urlencoded";
    struct http_header headers[3] = { { "accept", "application/json", 16 },
                                      { "content-type", type, sizeof type - 1 } };
    add_client (g, form, &client);
    if (client)
        headers[2] = (struct http_header){ "authorization", client, strlen (client) };
    struct http_request request = { .method = "POST",
                                    .url = url,
                                    .headers = headers,
                                    .header_count = client ? 3 : 2,
                                    .body_kind = HTTP_BODY_BUFFER,
                                    .body = form->data,
                                    .body_len = form->len };
    bool is_answered = ask (a, &request, r, err);
    secret_wipe (form->data, form->len);
    if (client)
        secret_wipe (client, strlen (client));
    return is_answered;
}

/* Its own word for a refresh token that is good for nothing any more (RFC 6749, 5.2). */
static void
forget_refused (struct oauth_grant *g, const struct http_response *r)
{
    _cleanup_json_ json_t *o = object_of (r);
    if (! str_eq (json_get_string (o, "error"), "invalid_grant"))
        return;
    secret_free (g->refresh_token);
    g->refresh_token = NULL;
}

bool
oauth_ask_token (const struct oauth_asker *a, struct oauth_grant *g, struct buf *form,
                 bool *is_refused, struct mur_error **err)
{
    _cleanup_http_response_ struct http_response r = { 0 };
    *is_refused = false;
    if (! post_form (a, g->token_endpoint, g, form, &r, err))
        return false;
    *is_refused = r.status == 400 || r.status == 401;
    if (r.status != 200) {
        forget_refused (g, &r);
        return fail_answer (a, g->token_endpoint, &r, err);
    }
    _cleanup_json_ json_t *o = object_of (&r);
    secret_wipe (r.body.data, r.body.len);
    return take_token (o, g, err);
}

void
oauth_ask_revoke (const struct oauth_asker *a, const struct oauth_grant *g)
{
    const struct secret *tokens[] = { g->refresh_token, g->access_token };
    for (size_t i = 0; g->revocation_endpoint && i < ARRAY_LEN (tokens); i++) {
        _cleanup_http_response_ struct http_response r = { 0 };
        _cleanup_buf_ struct buf form = { 0 };
        if (! tokens[i])
            continue;
        oauth_form_add (&form, "token", secret_reveal (tokens[i]));
        oauth_form_add (&form, "token_type_hint", i ? "access_token" : "refresh_token");
        (void)post_form (a, g->revocation_endpoint, g, &form, &r, NULL);
    }
}
