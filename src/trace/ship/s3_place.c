/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/ship/s3_place.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "net/url.h"

#include <ctype.h>
#include <string.h>

#define SCHEME        "s3://"
#define USUAL_REGION  "us-east-1" /* servers that have none take this one */
#define NAME_BYTES    255
#define AWS_HOST      "amazonaws.com"
#define AWS_CHINA     "cn-"
#define AWS_CHINA_TLD ".cn"

/* What may follow the '?'. */
struct words {
    char *region, *endpoint, *style;
};

static void
words_clear (struct words *w)
{
    free (w->region);
    free (w->endpoint);
    free (w->style);
}

char *
s3_escape (const char *key)
{
    struct buf out = { 0 };
    for (const char *c = key; *c; c++)
        if (isalnum ((unsigned char)*c) || strchr ("/._-~", *c))
            buf_putc (&out, *c);
        else
            buf_printf (&out, "%%%02X", (unsigned char)*c);
    return out.len ? buf_steal (&out) : x_strdup ("");
}

/* A name of a bucket or region: it becomes part of a host. */
static bool
is_name (const char *text)
{
    size_t len = strlen (text);
    return len && len <= NAME_BYTES &&
           strspn (text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRS"
                         "TUVWXYZ0123456789.-_") == len;
}

static bool
fail (struct mur_error **err, const char *url, const char *what)
{
    mur_fail (err, E_IO_003, "records store \"%s\" %s", url, what);
    return mur_hint (err, "s3://BUCKET/PREFIX?region=eu-central-1, and for another server than "
                          "Amazon's &endpoint=https://HOST");
}

static bool
read_word (const char *url, const char *word, size_t len, struct words *out, struct mur_error **err)
{
    const struct {
        const char *name;
        char **to;
    } known[] = { { "region=", &out->region },
                  { "endpoint=", &out->endpoint },
                  { "style=", &out->style } };
    for (size_t i = 0; i < ARRAY_LEN (known); i++) {
        size_t name_len = strlen (known[i].name);
        if (len <= name_len || strncmp (word, known[i].name, name_len) != 0)
            continue;
        free (*known[i].to);
        *known[i].to = x_strndup (word + name_len, len - name_len);
        return true;
    }
    return fail (err, url, "has a word after '?' that is not region=, endpoint= or style=");
}

static bool
read_words (const char *url, const char *text, struct words *out, struct mur_error **err)
{
    while (text && *text) {
        size_t len = strcspn (text, "&");
        if (! read_word (url, text, len, out, err))
            return false;
        text += len + (text[len] == '&');
    }
    return true;
}

static void
take_variable (char **to, const char *first, const char *second)
{
    const char *names[] = { first, second };
    for (size_t i = 0; ! *to && i < ARRAY_LEN (names); i++) {
        const char *value = getenv (names[i]);
        if (value && *value)
            *to = x_strdup (value);
    }
}

char *
s3_amazons (const char *region, const char *service)
{
    return x_asprintf ("https://%s.%s.%s%s", service, region, AWS_HOST,
                       str_starts (region, AWS_CHINA) ? AWS_CHINA_TLD : "");
}

/* The bucket as a part of the host, or of the path: there a certificate of "*.s3..." still holds
 * where its name has dots. */
static bool
is_virtual (const struct words *w, bool is_amazons, const char *bucket)
{
    return w->style ? str_eq (w->style, "virtual") : is_amazons && ! strchr (bucket, '.');
}

static void
compose (struct s3_place *out, const struct url *at, const char *bucket, const char *prefix,
         bool is_in_host)
{
    _cleanup_free_ char *escaped = s3_escape (prefix);
    size_t len = strlen (at->path);
    while (len && at->path[len - 1] == '/')
        len--;
    bool says_port =
        at->authority.port != URL_NO_PORT && at->authority.port != url_default_port (at->scheme);
    _cleanup_free_ char *port = says_port ? x_asprintf (":%d", at->authority.port) : x_strdup ("");
    out->host = x_asprintf ("%s%s%s%s", is_in_host ? bucket : "", is_in_host ? "." : "",
                            at->authority.host, port);
    out->origin = x_asprintf ("%s://%s", at->scheme, out->host);
    out->path = x_asprintf ("%.*s%s%s%s%s", (int)len, at->path, is_in_host ? "" : "/",
                            is_in_host ? "" : bucket, *escaped ? "/" : "", escaped);
    out->is_private = str_eq (at->scheme, "https") || host_is_loopback (at->authority.host);
}

static bool
place_bucket (const char *url, const char *bucket, const char *prefix, struct words *w,
              struct s3_place *out, struct mur_error **err)
{
    take_variable (&w->region, "AWS_REGION", "AWS_DEFAULT_REGION");
    take_variable (&w->endpoint, "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL");
    bool is_amazons = ! w->endpoint;
    if (! is_name (bucket))
        return fail (err, url, "names no bucket");
    if (w->style && ! str_eq (w->style, "path") && ! str_eq (w->style, "virtual"))
        return fail (err, url, "has another style than path or virtual");
    if (! w->region && is_amazons)
        return fail (err, url, "has no region, and AWS_REGION is not set");
    if (! w->region)
        w->region = x_strdup (USUAL_REGION);
    if (! is_name (w->region))
        return fail (err, url, "has a region that is none");
    if (is_amazons)
        w->endpoint = s3_amazons (w->region, "s3");
    _cleanup_url_ struct url at = { 0 };
    const char *fault = url_parse (w->endpoint, &at);
    if (fault || at.authority.has_userinfo || at.has_query || at.has_fragment)
        return fail (err, url, "has an endpoint that is no plain address");
    out->region = steal_ptr (&w->region);
    compose (out, &at, bucket, prefix, is_virtual (w, is_amazons, bucket));
    return true;
}

bool
s3_place_read (const char *url, struct s3_place *out, struct mur_error **err)
{
    struct words w = { 0 };
    const char *at = url + strlen (SCHEME), *query = strchr (at, '?');
    _cleanup_free_ char *whole = query ? x_strndup (at, (size_t)(query - at)) : x_strdup (at);
    for (size_t len = strlen (whole); len && whole[len - 1] == '/'; len--)
        whole[len - 1] = '\0';
    char *slash = strchr (whole, '/');
    if (slash)
        *slash = '\0';
    bool is_read = read_words (url, query ? query + 1 : NULL, &w, err) &&
                   place_bucket (url, whole, slash ? slash + 1 : "", &w, out, err);
    words_clear (&w);
    return is_read;
}

void
s3_place_clear (struct s3_place *p)
{
    free (p->origin);
    free (p->host);
    free (p->path);
    free (p->region);
    *p = (struct s3_place){ 0 };
}
