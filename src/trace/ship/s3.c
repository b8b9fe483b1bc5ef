/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/ship/s3.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/keys/sigv4.h"
#include "base/secret.h"
#include "net/retry_after.h"
#include "trace/ship/s3_answer.h"
#include "trace/ship/s3_login.h"

#include <string.h>

#define KEY_ID "AWS_ACCESS_KEY_ID"
#define KEY    "AWS_SECRET_ACCESS_KEY"
#define TOKEN  "AWS_SESSION_TOKEN"

struct s3 {
    struct s3_place place;
    struct s3_login *login;
};

struct s3 *
s3_open (const char *url, struct mur_error **err)
{
    _cleanup_ (s3_freep) struct s3 *s = x_new0 (struct s3);
    if (! s3_place_read (url, &s->place, err))
        return NULL;
    s->login = s3_login_new (&s->place, err);
    if (! s->login)
        return NULL;
    return steal_ptr (&s);
}

void
s3_free (struct s3 *s)
{
    s3_login_freep (&s->login);
    s3_place_clear (&s->place);
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
s3_sign (const struct s3 *s, struct http_client *http, const char *method, const char *key,
         const void *data, size_t len, struct s3_signed *out, struct mur_error **err)
{
    _cleanup_s3_keys_ struct s3_keys keys = { 0 };
    *out = (struct s3_signed){ 0 };
    bool has_keys = s3_login_keys (s->login, http, &keys, err);
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

bool
s3_is_nothing (const struct http_response *r)
{
    _cleanup_free_ char *code = r->status == 404 ? s3_answer_word (r, "Code") : NULL;
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
    _cleanup_free_ char *code = s3_answer_word (r, "Code");
    _cleanup_free_ char *region = s3_answer_word (r, "Region");
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
