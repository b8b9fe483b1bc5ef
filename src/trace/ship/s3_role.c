/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/ship/s3_role.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fdio.h"
#include "net/http_fetch.h"
#include "net/url.h"
#include "trace/ship/s3_answer.h"
#include "trace/ship/s3_place.h"

#include <ctype.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>

#define ROLE          "AWS_ROLE_ARN"
#define TOKEN_FILE    "AWS_WEB_IDENTITY_TOKEN_FILE"
#define TOKEN_MAX     65536
#define ANSWER_MAX    65536
#define VALUE_MAX     8192
#define CONNECT_MS    5000
#define SILENCE_MS    15000
#define USUAL_LIFE_MS 900000 /* the shortest there is, where the answer does not say */

static const char *
variable (const char *name)
{
    const char *value = getenv (name);
    return value && *value ? value : NULL;
}

bool
s3_role_is_named (void)
{
    return variable (ROLE) && variable (TOKEN_FILE);
}

static void
put_form (struct buf *out, const char *name, const char *value, size_t len)
{
    buf_printf (out, "&%s=", name);
    for (size_t i = 0; i < len; i++)
        if (isalnum ((unsigned char)value[i]) || strchr ("._-~", value[i]))
            buf_putc (out, value[i]);
        else
            buf_printf (out, "%%%02X", (unsigned char)value[i]);
}

/* What is asked; to be wiped, for the token is in it. */
static bool
compose (struct buf *out, struct mur_error **err)
{
    const char *path = variable (TOKEN_FILE), *role = variable (ROLE);
    const char *name = variable ("AWS_ROLE_SESSION_NAME");
    _cleanup_buf_ struct buf token = { 0 };
    _cleanup_close_ int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || ! fd_read_all (fd, TOKEN_MAX, &token))
        return mur_fail_errno (err, E_IO_003, TOKEN_FILE ": cannot read %s", path);
    size_t len = token.len;
    while (len && isspace ((unsigned char)token.data[len - 1]))
        len--;
    name = name ? name : "murmur";
    buf_puts (out, "Action=AssumeRoleWithWebIdentity&Version=2011-06-15");
    put_form (out, "RoleArn", role, strlen (role));
    put_form (out, "RoleSessionName", name, strlen (name));
    put_form (out, "WebIdentityToken", token.data, len);
    secret_wipe (token.data, token.len);
    return true;
}

static bool
refuse (const char *host, const struct http_response *r, struct mur_error **err)
{
    _cleanup_free_ char *code = s3_answer_word (r, "Code");
    mur_fail (err, E_IO_003, "%s does not give the role %s: %d%s%s", host, variable (ROLE),
              r->status, code ? " " : "", code ? code : "");
    return mur_hint (err, "the role's trust policy must name this cluster's issuer of tokens and "
                          "the pod's service account");
}

static uint64_t
end_of (const struct http_response *r)
{
    _cleanup_free_ char *text = s3_answer_text (r, "Expiration", VALUE_MAX);
    struct tm at = { 0 };
    if (! text || ! strptime (text, "%Y-%m-%dT%H:%M:%S", &at))
        return clock_unix_ms () + USUAL_LIFE_MS;
    return (uint64_t)timegm (&at) * 1000;
}

static struct secret *
part_of (const struct http_response *r, const char *name)
{
    char *text = s3_answer_text (r, name, VALUE_MAX);
    struct secret *value = text ? secret_new (text, strlen (text)) : NULL;
    if (text)
        secret_wipe (text, strlen (text));
    free (text);
    return value;
}

static bool
read_keys (const char *host, const struct http_response *r, struct s3_keys *out,
           uint64_t *ends_unix_ms, struct mur_error **err)
{
    *out = (struct s3_keys){ part_of (r, "AccessKeyId"), part_of (r, "SecretAccessKey"),
                             part_of (r, "SessionToken") };
    *ends_unix_ms = end_of (r);
    if (out->id && out->key && out->token)
        return true;
    s3_keys_clear (out);
    return mur_fail (err, E_IO_003, "%s gave the role without its keys", host);
}

static bool
ask (struct http_client *http, const char *address, const struct buf *body,
     struct http_response *out, struct mur_error **err)
{
    static const char form[] = "application/x-www-form-urlencoded";
    const struct http_header headers[] = { { "content-type", form, sizeof form - 1 } };
    const struct http_fetch fetch = { .request = { .method = "POST",
                                                   .url = address,
                                                   .headers = headers,
                                                   .header_count = 1,
                                                   .body_kind = HTTP_BODY_BUFFER,
                                                   .body = body->data,
                                                   .body_len = body->len,
                                                   .connect_timeout_ms = CONNECT_MS,
                                                   .first_byte_timeout_ms = SILENCE_MS,
                                                   .between_bytes_timeout_ms = SILENCE_MS },
                                      .limit_bytes = ANSWER_MAX };
    return http_fetch (http, &fetch, out, NULL, err);
}

bool
s3_role_take (struct http_client *http, const char *region, struct s3_keys *out,
              uint64_t *ends_unix_ms, struct mur_error **err)
{
    const char *named = variable ("AWS_ENDPOINT_URL_STS");
    named = named ? named : variable ("AWS_ENDPOINT_URL");
    _cleanup_free_ char *address = named ? x_strdup (named) : s3_amazons (region, "sts");
    _cleanup_url_ struct url at = { 0 };
    if (url_parse (address, &at) ||
        ! (str_eq (at.scheme, "https") || host_is_loopback (at.authority.host)))
        return mur_fail (err, E_IO_003, "%s: the token of " TOKEN_FILE " is sent over https alone",
                         address);
    _cleanup_buf_ struct buf body = { 0 };
    _cleanup_http_response_ struct http_response r = { 0 };
    bool is_taken = compose (&body, err) && ask (http, address, &body, &r, err) &&
                    (r.status == 200 ? read_keys (at.authority.host, &r, out, ends_unix_ms, err)
                                     : refuse (at.authority.host, &r, err));
    if (body.data)
        secret_wipe (body.data, body.len);
    if (r.body.data)
        secret_wipe (r.body.data, r.body.len);
    return is_taken;
}
