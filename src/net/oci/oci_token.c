/* SPDX-License-Identifier: Apache-2.0 */
#include "net/oci/oci_token.h"

#include "base/alloc.h"
#include "base/json.h"
#include "net/auth_challenge.h"
#include "net/url.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define ANSWER_MAX ((size_t)1 << 20)
#define TIMEOUT_MS 30000
#define CLIENT_ID  "murmur"

struct challenge {
    bool has_basic, has_bearer;
    char *realm, *service, *scope; /* of the bearer's */
};

static void
challenge_clear (struct challenge *c)
{
    free (c->realm);
    free (c->service);
    free (c->scope);
}

static bool
is_word (const char *text, size_t len, const char *word)
{
    return strlen (word) == len && strncasecmp (text, word, len) == 0;
}

static void
take_challenge (void *ctx, const char *scheme, size_t scheme_len, const char *name, size_t name_len,
                const char *value)
{
    struct challenge *c = ctx;
    bool is_bearer = is_word (scheme, scheme_len, "bearer");
    const struct {
        const char *name;
        char **to;
    } known[] = { { "realm", &c->realm }, { "service", &c->service }, { "scope", &c->scope } };
    c->has_basic |= is_word (scheme, scheme_len, "basic");
    c->has_bearer |= is_bearer;
    for (size_t i = 0; is_bearer && name && i < ARRAY_LEN (known); i++)
        if (is_word (name, name_len, known[i].name) && ! *known[i].to)
            *known[i].to = x_strdup (value);
}

static void
form_add (struct buf *form, const char *name, const char *value)
{
    if (! value)
        return;
    buf_printf (form, "%s%s=", form->len ? "&" : "", name);
    for (const unsigned char *p = (const unsigned char *)value; *p; p++)
        if (isalnum (*p) || strchr ("-._~", *p))
            buf_putc (form, (char)*p);
        else
            buf_printf (form, "%%%02X", *p);
}

/* A registry asks over https: so must whoever it sends us to. */
static bool
check_realm (const struct oci_token_request *q, const char *realm, struct mur_error **err)
{
    _cleanup_url_ struct url u = { 0 };
    const char *fault = realm ? url_parse (realm, &u) : "is not named";
    bool is_plain = ! fault && str_eq (u.scheme, "http");
    bool may_be_plain =
        is_plain && str_starts (q->registry_url, "http:") &&
        (host_is_loopback (u.authority.host) || url_same_origin (realm, q->registry_url));
    if (! fault && u.authority.has_userinfo)
        fault = "holds a user name";
    if (! fault && is_plain && ! may_be_plain)
        fault = "is not https";
    return ! fault ||
           mur_fail (err, E_REG_012, "%s: the token server it names %s", q->ref->host, fault);
}

static struct secret *
read_token (const struct oci_token_request *q, const struct http_response *r,
            struct mur_error **err)
{
    const char *body = r->body.data ? r->body.data : "";
    _cleanup_json_ json_t *json = json_parse (body, r->body.len, "token", E_REG_006, NULL);
    const char *token = json_get_string (json, "token");
    if (! token)
        token = json_get_string (json, "access_token");
    bool is_line = token && *token;
    for (const char *p = is_line ? token : ""; *p; p++)
        is_line &= *p > ' ' && *p < 0x7f;
    if (! is_line)
        return mur_fail (err, E_REG_006, "the token server of %s gave no token", q->ref->host),
               NULL;
    char *value = x_asprintf ("Bearer %s", token);
    struct secret *secret = secret_new (value, strlen (value));
    secret_wipe (value, strlen (value));
    free (value);
    return secret;
}

static bool
ask (const struct oci_token_request *q, const struct http_request *request, struct http_response *r,
     struct mur_error **err)
{
    struct http_fetch fetch = { .request = *request,
                                .limit_bytes = ANSWER_MAX,
                                .total_timeout_ms = TIMEOUT_MS,
                                .cancel = q->cancel };
    fetch.request.uses_proxy_env = true;
    _cleanup_error_ struct mur_error *caught = NULL;
    if (! http_fetch (q->http, &fetch, r, NULL, &caught))
        return mur_fail (err, E_REG_006, "the token server of %s did not answer: %s", q->ref->host,
                         caught->message);
    if (r->status == 200)
        return true;
    if (r->status == 401 || r->status == 403 || r->status == 400) {
        mur_fail (err, E_REG_012, "the token server of %s refused our credentials (HTTP %d)",
                  q->ref->host, r->status);
        return mur_hint (err, "log in again: docker login %s", q->ref->host);
    }
    return mur_fail (err, E_REG_006, "the token server of %s answered HTTP %d", q->ref->host,
                     r->status);
}

/* A token with an identity token, by a form (the OAuth2 way of the distribution project). */
static bool
exchange (const struct oci_token_request *q, const struct challenge *c, const struct oci_login *l,
          struct http_response *r, struct mur_error **err)
{
    static const struct http_header headers[] = {
        { "content-type", "application/x-www-form-urlencoded", 33 },
        { "accept", "application/json", 16 },
    };
    struct buf form = { 0 };
    form_add (&form, "grant_type", "refresh_token");
    form_add (&form, "service", c->service);
    form_add (&form, "client_id", CLIENT_ID);
    form_add (&form, "scope", c->scope);
    form_add (&form, "refresh_token", secret_reveal (l->secret));
    bool ok = ask (q,
                   &(struct http_request){ .method = "POST",
                                           .url = c->realm,
                                           .headers = headers,
                                           .header_count = ARRAY_LEN (headers),
                                           .body_kind = HTTP_BODY_BUFFER,
                                           .body = form.data,
                                           .body_len = form.len },
                   r, err);
    secret_wipe (form.data, form.len);
    buf_free (&form);
    return ok;
}

/* A token with a user and a password, or for anybody. */
static bool
obtain (const struct oci_token_request *q, const struct challenge *c, const char *basic,
        struct http_response *r, struct mur_error **err)
{
    struct buf query = { 0 };
    form_add (&query, "service", c->service);
    form_add (&query, "scope", c->scope);
    _cleanup_free_ char *url = x_asprintf ("%s%c%s", c->realm, strchr (c->realm, '?') ? '&' : '?',
                                           query.data ? query.data : "");
    buf_free (&query);
    const struct http_header headers[] = {
        { "accept", "application/json", 16 },
        { "authorization", basic, basic ? strlen (basic) : 0 },
    };
    return ask (
        q,
        &(struct http_request){
            .method = "GET", .url = url, .headers = headers, .header_count = basic ? 2 : 1 },
        r, err);
}

static struct secret *
bearer (const struct oci_token_request *q, const struct challenge *c, const struct oci_login *l,
        const char *basic, struct mur_error **err)
{
    _cleanup_http_response_ struct http_response r = { 0 };
    if (! check_realm (q, c->realm, err))
        return NULL;
    bool ok = l->is_identity_token ? exchange (q, c, l, &r, err) : obtain (q, c, basic, &r, err);
    struct secret *token = ok ? read_token (q, &r, err) : NULL;
    if (r.body.data)
        secret_wipe (r.body.data, r.body.len);
    return token;
}

struct secret *
oci_token_get (const struct oci_token_request *q, struct mur_error **err)
{
    _cleanup_ (challenge_clear) struct challenge c = { 0 };
    _cleanup_oci_login_ struct oci_login login = { 0 };
    auth_challenge_each (q->challenge, take_challenge, &c);
    if (! oci_login_find (q->ref->host, q->ref->repository, &login, err))
        return NULL;
    char *basic = oci_login_basic (&login);
    struct secret *shown = NULL;
    if (c.has_bearer)
        shown = bearer (q, &c, &login, basic, err);
    else if (c.has_basic && basic)
        shown = secret_new (basic, strlen (basic));
    if (basic)
        secret_wipe (basic, strlen (basic));
    free (basic);
    return shown;
}
