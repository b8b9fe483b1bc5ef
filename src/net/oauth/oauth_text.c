/* SPDX-License-Identifier: Apache-2.0 */
#include "net/oauth/oauth_text.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/printable.h"
#include "net/auth_challenge.h"
#include "net/own_names.h"
#include "net/url.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define LIST_MAX 64 /* items of one list of metadata */

bool
oauth_fail (struct mur_error **err, const char *fmt, ...)
{
    _cleanup_buf_ struct buf shown = { 0 };
    va_list ap;
    va_start (ap, fmt);
    _cleanup_free_ char *text = x_vasprintf (fmt, ap);
    va_end (ap);
    buf_append_printable (&shown, text, strlen (text), PRINTABLE_HEX);
    return mur_fail (err, E_MCP_009, "%s", shown.data ? shown.data : "");
}

/* --- the challenge --- */

static void
take_value (void *ctx, const char *scheme, size_t scheme_len, const char *name, size_t len,
            const char *value)
{
    struct oauth_challenge *c = ctx;
    const struct {
        const char *name;
        char **to;
    } known[] = { { "resource_metadata", &c->resource_metadata },
                  { "scope", &c->scope },
                  { "error", &c->error } };
    bool is_bearer = scheme_len == 6 && strncasecmp (scheme, "Bearer", scheme_len) == 0;
    for (size_t i = 0; name && is_bearer && i < ARRAY_LEN (known); i++)
        if (strlen (known[i].name) == len && strncasecmp (name, known[i].name, len) == 0 &&
            ! *known[i].to)
            *known[i].to = x_strdup (value);
}

void
oauth_challenge_read (const char *header, struct oauth_challenge *out)
{
    *out = (struct oauth_challenge){ 0 };
    auth_challenge_each (header, take_value, out);
}

void
oauth_challenge_clear (struct oauth_challenge *c)
{
    free (c->resource_metadata);
    free (c->scope);
    free (c->error);
    *c = (struct oauth_challenge){ 0 };
}

/* --- addresses --- */

void
oauth_well_known (enum oauth_metadata kind, const char *url, struct strv *out)
{
    const char *mark = strstr (url, "://");
    const char *host = mark ? mark + 3 : url;
    size_t origin = (size_t)(host - url) + strcspn (host, "/?#");
    size_t path_len = strcspn (url + origin, "?#");
    while (path_len && url[origin + path_len - 1] == '/')
        path_len--;
    const char *path = url + origin;
    static const char *const before[] = { "oauth-protected-resource", "oauth-authorization-server",
                                          "openid-configuration" };
    size_t first = kind == OAUTH_OF_RESOURCE ? 0 : 1, last = kind == OAUTH_OF_RESOURCE ? 0 : 2;
    for (size_t i = first; i <= last; i++)
        strv_printf (out, "%.*s/.well-known/%s%.*s", (int)origin, url, before[i], (int)path_len,
                     path);
    if (! path_len)
        return;
    if (kind == OAUTH_OF_RESOURCE)
        strv_printf (out, "%.*s/.well-known/%s", (int)origin, url, before[0]);
    else
        strv_printf (out, "%.*s/.well-known/%s", (int)(origin + path_len), url, before[2]);
}

const char *
oauth_url_fault (const char *url, const char *server)
{
    _cleanup_url_ struct url u = { 0 }, s = { 0 };
    for (const char *p = url; *p; p++)
        if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7f || *p == '\\')
            return "holds a blank or a character outside ASCII";
    const char *fault = url_parse (url, &u);
    if (fault)
        return fault;
    if (url_parse (server, &s))
        return "belongs to no server";
    if (u.authority.has_userinfo)
        return "holds a user name or password";
    if (u.has_fragment)
        return "holds a fragment";
    bool is_own = str_eq (u.authority.host, s.authority.host);
    bool is_here = host_is_loopback (u.authority.host) && host_is_loopback (s.authority.host);
    if (! str_eq (u.scheme, "https") && ! is_here)
        return "is not https";
    if (! is_own && ! is_here && host_is_private (u.authority.host))
        return "leads to a private address";
    return NULL;
}

/* --- metadata --- */

/* The texts of an array, as scopes are written. Owned; NULL: there are none. */
static char *
joined (const json_t *list)
{
    _cleanup_strv_ struct strv words = { 0 };
    size_t i;
    json_t *item;
    json_array_foreach (list, i, item) if (json_is_string (item) && words.len < LIST_MAX)
        strv_push (&words, json_string_value (item));
    return words.len ? strv_join (&words, " ") : NULL;
}

/* The server, or what lies above it. */
static bool
covers (const char *resource, const char *server)
{
    _cleanup_url_ struct url r = { 0 }, s = { 0 };
    if (! url_same_origin (resource, server) || url_parse (resource, &r) ||
        url_parse (server, &s) || r.has_fragment)
        return false;
    size_t len = strlen (r.path);
    while (len && r.path[len - 1] == '/')
        len--;
    return strncmp (r.path, s.path, len) == 0 && (! s.path[len] || s.path[len] == '/');
}

bool
oauth_resource_read (const json_t *metadata, const char *server, struct oauth_resource *out,
                     struct mur_error **err)
{
    const char *resource = json_get_string (metadata, "resource");
    size_t i;
    json_t *item;
    *out = (struct oauth_resource){ 0 };
    if (! resource || ! covers (resource, server))
        return oauth_fail (err, "the metadata of %s are of another resource (%.200s)", server,
                           resource ? resource : "none");
    out->resource = x_strdup (resource);
    out->scopes = joined (json_object_get (metadata, "scopes_supported"));
    json_array_foreach (json_object_get (metadata, "authorization_servers"), i,
                        item) if (json_is_string (item) && out->issuers.len < LIST_MAX)
        strv_push (&out->issuers, json_string_value (item));
    return true;
}

void
oauth_resource_clear (struct oauth_resource *r)
{
    free (r->resource);
    free (r->scopes);
    strv_free (&r->issuers);
    *r = (struct oauth_resource){ 0 };
}

static bool
holds (const json_t *metadata, const char *list, const char *word)
{
    size_t i;
    json_t *item;
    json_array_foreach (json_object_get (metadata, list), i,
                        item) if (str_eq (json_string_value (item), word)) return true;
    return false;
}

static size_t
bare_len (const char *url)
{
    size_t len = strlen (url);
    return len && url[len - 1] == '/' ? len - 1 : len;
}

static bool
is_same_issuer (const char *a, const char *b)
{
    return a && bare_len (a) == bare_len (b) && strncmp (a, b, bare_len (a)) == 0;
}

static bool
take_endpoint (const json_t *metadata, const char *key, bool is_needed, const char *server,
               char **out, struct mur_error **err)
{
    const char *url = json_get_string (metadata, key);
    const char *fault = url ? oauth_url_fault (url, server) : NULL;
    if (! url)
        return ! is_needed || oauth_fail (err, "the metadata of the issuer name no %s", key);
    if (fault)
        return oauth_fail (err, "%s %.200s of the issuer %s", key, url, fault);
    *out = x_strdup (url);
    return true;
}

static void
read_abilities (const json_t *m, struct oauth_issuer *out)
{
    static const char ways[] = "token_endpoint_auth_methods_supported";
    bool says_ways = json_is_array (json_object_get (m, ways));
    out->says_iss =
        json_is_true (json_object_get (m, "authorization_response_iss_parameter_supported"));
    out->takes_documents =
        json_is_true (json_object_get (m, "client_id_metadata_document_supported"));
    out->takes_public = ! says_ways || holds (m, ways, "none");
    out->takes_post = holds (m, ways, "client_secret_post");
    out->takes_basic = ! says_ways || holds (m, ways, "client_secret_basic");
    out->gives_offline = holds (m, "scopes_supported", "offline_access");
}

bool
oauth_issuer_read (const json_t *metadata, const char *issuer, const char *server,
                   struct oauth_issuer *out, struct mur_error **err)
{
    const char *said = json_get_string (metadata, "issuer");
    const struct {
        const char *key;
        bool is_needed;
        char **to;
    } endpoints[] = {
        { "authorization_endpoint", true, &out->authorization_endpoint },
        { "token_endpoint", true, &out->token_endpoint },
        { "registration_endpoint", false, &out->registration_endpoint },
        { "revocation_endpoint", false, &out->revocation_endpoint },
    };
    *out = (struct oauth_issuer){ 0 };
    if (! is_same_issuer (said, issuer))
        return oauth_fail (err, "the issuer %s calls itself %.200s", issuer,
                           said ? said : "nothing");
    if (! holds (metadata, "code_challenge_methods_supported", "S256"))
        return oauth_fail (err, "the issuer %s does not offer PKCE with S256", issuer);
    for (size_t i = 0; i < ARRAY_LEN (endpoints); i++)
        if (! take_endpoint (metadata, endpoints[i].key, endpoints[i].is_needed, server,
                             endpoints[i].to, err))
            return false;
    out->issuer = x_strdup (said);
    read_abilities (metadata, out);
    return true;
}

void
oauth_issuer_clear (struct oauth_issuer *i)
{
    char *texts[] = { i->issuer, i->authorization_endpoint, i->token_endpoint,
                      i->registration_endpoint, i->revocation_endpoint };
    for (size_t k = 0; k < ARRAY_LEN (texts); k++)
        free (texts[k]);
    *i = (struct oauth_issuer){ 0 };
}

/* --- forms --- */

static void
add_words (struct strv *out, const char *scopes)
{
    _cleanup_free_ char *copy = x_strdup (scopes ? scopes : "");
    char *rest = copy;
    for (char *word; (word = strsep (&rest, " "));)
        if (*word && ! strv_contains (out, word) && out->len < LIST_MAX)
            strv_push (out, word);
}

char *
oauth_scopes_joined (const char *a, const char *b)
{
    _cleanup_strv_ struct strv words = { 0 };
    add_words (&words, a);
    add_words (&words, b);
    return words.len ? strv_join (&words, " ") : x_strdup ("");
}

static void
put_encoded (struct buf *out, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (isalnum (c) || strchr ("-._~", c))
            buf_putc (out, (char)c);
        else
            buf_printf (out, "%%%02X", c);
    }
}

void
oauth_form_add (struct buf *form, const char *name, const char *value)
{
    if (! value)
        return;
    if (form->len)
        buf_putc (form, '&');
    put_encoded (form, name);
    buf_putc (form, '=');
    put_encoded (form, value);
}

static int
hex_digit (char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Owned; NULL: malformed, or it holds a NUL. */
static char *
decoded (const char *text, size_t len)
{
    _cleanup_free_ char *out = x_new_array (char, len + 1);
    size_t at = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] != '%') {
            out[at++] = text[i] == '+' ? ' ' : text[i];
            continue;
        }
        int high = len - i > 2 ? hex_digit (text[i + 1]) : -1;
        int low = len - i > 2 ? hex_digit (text[i + 2]) : -1;
        if (high < 0 || low < 0 || ! (high + low))
            return NULL;
        out[at++] = (char)(high * 16 + low);
        i += 2;
    }
    out[at] = '\0';
    return steal_ptr (&out);
}

char *
oauth_form_get (const char *form, const char *name)
{
    size_t name_len = strlen (name);
    for (const char *at = form; at && *at;) {
        size_t len = strcspn (at, "&"), key = strcspn (at, "=&");
        if (key == name_len && strncmp (at, name, key) == 0 && key < len)
            return decoded (at + key + 1, len - key - 1);
        at += len + (at[len] == '&');
    }
    return NULL;
}

char *
oauth_pkce_challenge (const char *verifier)
{
    char hex[SHA256_HEX_LEN + 1];
    unsigned char raw[SHA256_HEX_LEN / 2];
    sha256_hex (verifier, strlen (verifier), hex);
    for (size_t i = 0; i < sizeof raw; i++)
        raw[i] = (unsigned char)(hex_digit (hex[2 * i]) * 16 + hex_digit (hex[2 * i + 1]));
    return base64url_encode (raw, sizeof raw);
}
