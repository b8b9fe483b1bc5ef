/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/ship/s3.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/keys/sigv4.h"
#include "base/secret.h"
#include "manifest/settings/config.h"
#include "manifest/settings/launcher_keys.h"
#include "manifest/settings/secrets_dir.h"
#include "net/retry_after.h"

#include <ctype.h>
#include <string.h>

#define KEY_ID    "AWS_ACCESS_KEY_ID"
#define KEY       "AWS_SECRET_ACCESS_KEY"
#define TOKEN     "AWS_SESSION_TOKEN"
#define WORD_MOST 64 /* of what a server says we show codes and regions alone */

struct keys {
    struct secret *id, *key, *token;
};

struct s3 {
    struct s3_place place;
    struct keys usual; /* of the configuration, else the environment; its id may be NULL */
};

static void
keys_clear (struct keys *k)
{
    secret_freep (&k->id);
    secret_freep (&k->key);
    secret_freep (&k->token);
}

/* --- keys --- */

typedef struct secret *source_fn (const void *ctx, const char *name);

static struct secret *
of_launcher (const void *ctx, const char *name)
{
    (void)ctx;
    return launcher_keys_ask (name);
}

static struct secret *
of_folder (const void *ctx, const char *name)
{
    (void)ctx;
    return secrets_dir_ask (name);
}

static struct secret *
of_config (const void *ctx, const char *name)
{
    const struct secret *value = ctx ? config_credential (ctx, name) : NULL;
    return value ? secret_copy (value) : NULL;
}

static struct secret *
of_environment (const void *ctx, const char *name)
{
    (void)ctx;
    const char *value = getenv (name);
    return value && *value ? secret_new (value, strlen (value)) : NULL;
}

/* All of one place: a token of another login would spoil the signature. */
static bool
take_keys (source_fn *source, const void *ctx, struct keys *out)
{
    out->id = source (ctx, KEY_ID);
    if (! out->id)
        return false;
    out->key = source (ctx, KEY);
    out->token = source (ctx, TOKEN);
    return true;
}

static void
copy_keys (const struct keys *from, struct keys *out)
{
    *out = (struct keys){ from->id ? secret_copy (from->id) : NULL,
                          from->key ? secret_copy (from->key) : NULL,
                          from->token ? secret_copy (from->token) : NULL };
}

/* Asked for each request, so that a file that was replaced holds from then on. */
static bool
find_keys (const struct s3 *s, struct keys *out, struct mur_error **err)
{
    if (! take_keys (of_launcher, NULL, out) && ! take_keys (of_folder, NULL, out))
        copy_keys (&s->usual, out);
    if (out->id && out->key)
        return true;
    mur_fail (err, E_IO_003, "a store of s3:// needs " KEY_ID " and " KEY "; %s",
              out->id ? "the second is missing where the first is" : "they are nowhere");
    return mur_hint (err, "give them as files of --secrets-dir, under credentials of the "
                          "configuration, or in the environment");
}

struct s3 *
s3_open (const char *url, struct mur_error **err)
{
    _cleanup_ (s3_freep) struct s3 *s = x_new0 (struct s3);
    if (! s3_place_read (url, &s->place, err))
        return NULL;
    _cleanup_config_ struct config *config = config_load_global (err);
    if (! config)
        return NULL;
    if (! take_keys (of_config, config, &s->usual))
        take_keys (of_environment, NULL, &s->usual);
    return steal_ptr (&s);
}

void
s3_free (struct s3 *s)
{
    s3_place_clear (&s->place);
    keys_clear (&s->usual);
    free (s);
}

/* --- asking --- */

char *
s3_address (const struct s3 *s, const char *key)
{
    _cleanup_free_ char *escaped = s3_escape (key);
    return x_asprintf ("%s%s/%s", s->place.origin, s->place.path, escaped);
}

void
s3_signed_clear (struct s3_signed *h)
{
    free (h->authorization);
    secret_freep (&h->token);
    *h = (struct s3_signed){ 0 };
}

static void
add (struct s3_signed *out, const char *name, const char *value)
{
    out->headers[out->count++] = (struct http_header){ name, value, strlen (value) };
}

bool
s3_sign (const struct s3 *s, const char *method, const char *key, const void *data, size_t len,
         struct s3_signed *out, struct mur_error **err)
{
    struct keys keys = { 0 };
    *out = (struct s3_signed){ 0 };
    bool has_keys = find_keys (s, &keys, err);
    if (has_keys && keys.token && ! s->place.is_private)
        has_keys =
            mur_fail (err, E_IO_003, "%s: " TOKEN " is sent over https alone", s->place.origin);
    if (has_keys) {
        _cleanup_free_ char *escaped = s3_escape (key);
        _cleanup_free_ char *path = x_asprintf ("%s/%s", s->place.path, escaped);
        uint64_t now = clock_unix_ms ();
        sigv4_date (now, out->date);
        sha256_hex (data ? data : "", len, out->sha256);
        out->token = steal_ptr (&keys.token);
        const struct sigv4_header headers[] = {
            { "host", s->place.host },
            { "x-amz-content-sha256", out->sha256 },
            { "x-amz-date", out->date },
            { "x-amz-security-token", out->token ? secret_reveal (out->token) : NULL },
        };
        const struct sigv4_request request = { .method = method,
                                               .path = path,
                                               .query = "",
                                               .headers = headers,
                                               .header_count = out->token ? 4 : 3,
                                               .payload_sha256 = out->sha256,
                                               .region = s->place.region,
                                               .service = "s3",
                                               .unix_ms = now };
        out->authorization = sigv4_authorization (&request, secret_reveal (keys.id), keys.key);
        add (out, "authorization", out->authorization);
        for (size_t i = 1; i < request.header_count; i++)
            add (out, headers[i].name, headers[i].value);
    }
    keys_clear (&keys);
    return has_keys;
}

/* --- being refused --- */

static const struct {
    const char *code, *help;
} refusals[] = {
    { "InvalidAccessKeyId", KEY_ID " is none of this server's" },
    { "SignatureDoesNotMatch",
      KEY " is not the one of " KEY_ID ", or something on the way changes host or path" },
    { "ExpiredToken", TOKEN " has expired: take new keys" },
    { "InvalidToken", TOKEN " is not of this login: all three come from one place" },
    { "AuthorizationHeaderMalformed", "name the bucket's region: ?region=" },
    { "PermanentRedirect", "name the bucket's region or server: ?region= or ?endpoint=" },
    { "IllegalLocationConstraintException", "name the bucket's region: ?region=" },
    { "NoSuchBucket", "make the bucket first; mur makes none" },
    { "AccessDenied", "the key needs s3:PutObject and s3:GetObject below the prefix; without "
                      "s3:ListBucket an object that is not there is refused, too" },
};

/* The text of an element of the answer when it is a plain word; owned. NULL: it is not. */
static char *
element (const struct http_response *r, const char *name)
{
    _cleanup_free_ char *open = x_asprintf ("<%s>", name);
    const char *at = r->body.len ? memmem (r->body.data, r->body.len, open, strlen (open)) : NULL;
    if (! at)
        return NULL;
    const char *end = r->body.data + r->body.len, *word = at + strlen (open);
    size_t len = 0;
    while (word + len < end && len < WORD_MOST &&
           (isalnum ((unsigned char)word[len]) || strchr (".-", word[len])))
        len++;
    return len && word + len < end && word[len] == '<' ? x_strndup (word, len) : NULL;
}

bool
s3_is_nothing (const struct http_response *r)
{
    _cleanup_free_ char *code = r->status == 404 ? element (r, "Code") : NULL;
    return r->status == 404 && (! code || str_eq (code, "NoSuchKey"));
}

static bool
refuse_clock (const struct http_response *r, const char *name, struct mur_error **err)
{
    uint64_t there, here = clock_unix_ms ();
    const char *date = http_response_header (r, "date");
    if (! date || ! retry_after_read (date, 0, &there))
        return mur_fail (err, E_IO_003, "the clock of this machine differs from the one of %s",
                         name);
    mur_fail (err, E_IO_003, "the clock of this machine is %llu seconds %s the one of %s",
              (unsigned long long)(here > there ? here - there : there - here) / 1000,
              here > there ? "ahead of" : "behind", name);
    return false;
}

bool
s3_refuse (const struct http_response *r, const char *name, const char *key, struct mur_error **err)
{
    _cleanup_free_ char *code = element (r, "Code");
    _cleanup_free_ char *region = element (r, "Region");
    if (str_eq (code, "RequestTimeTooSkewed")) {
        refuse_clock (r, name, err);
        return mur_hint (err, "set it: a signature holds for a quarter of an hour");
    }
    mur_fail (err, E_IO_003, "the records store %s answered %d%s%s to %s%s%s", name, r->status,
              code ? " " : "", code ? code : "", key, region ? "; its region is " : "",
              region ? region : "");
    for (size_t i = 0; code && i < ARRAY_LEN (refusals); i++)
        if (str_eq (refusals[i].code, code))
            return mur_hint (err, "%s", refusals[i].help);
    return false;
}
