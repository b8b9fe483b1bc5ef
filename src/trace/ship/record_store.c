/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/ship/record_store.h"

#include "base/alloc.h"
#include "base/secret.h"
#include "fs/root.h"
#include "manifest/settings/secrets_dir.h"
#include "net/http_fetch.h"
#include "net/url.h"
#include "trace/ship/s3.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define FILE_SCHEME      "file://"
#define S3_SCHEME        "s3://"
#define CONNECT_MS       5000
#define SILENCE_MS       30000
#define REFUSAL_TEXT_MAX 65536

struct record_store {
    char *url;              /* without a slash at its end */
    struct fs_root *folder; /* NULL: a server */
    struct http_client *http;
    struct s3 *s3;    /* NULL: a server that keeps what is PUT */
    bool takes_token; /* may be sent there */
};

/* --- opening --- */

static bool
open_folder (struct record_store *s, struct mur_error **err)
{
    const char *path = s->url + strlen (FILE_SCHEME);
    if (*path != '/')
        return mur_fail (err, E_IO_003, "%s: write file:// and an absolute path", s->url);
    int fd = open (path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return mur_fail_errno (err, E_IO_003, "cannot open the records store %s", path);
    s->folder = fs_root_new (fd, path, NULL, true);
    return true;
}

static bool
open_server (struct record_store *s, struct mur_error **err)
{
    _cleanup_url_ struct url url = { 0 };
    const char *fault = url_parse (s->url, &url);
    if (! fault && (url.authority.has_userinfo || url.has_query || url.has_fragment))
        fault = "holds more than scheme, host, port and path";
    if (fault) {
        mur_fail (err, E_IO_003, "records store \"%s\" %s", s->url, fault);
        return mur_hint (
            err,
            "write https://host/path, s3://bucket/prefix or file:///folder; a token is a file named " RECORD_STORE_TOKEN
            " of --secrets-dir");
    }
    s->takes_token = str_eq (url.scheme, "https") || host_is_loopback (url.authority.host);
    s->http = http_client_new ();
    return true;
}

static bool
open_s3 (struct record_store *s, struct mur_error **err)
{
    s->s3 = s3_open (s->url, err);
    s->http = s->s3 ? http_client_new () : NULL;
    return s->s3 != NULL;
}

struct record_store *
record_store_open (const char *url, struct mur_error **err)
{
    _cleanup_record_store_ struct record_store *s = x_new0 (struct record_store);
    s->url = x_strdup (url);
    for (size_t len = strlen (s->url); len && s->url[len - 1] == '/'; len--)
        s->url[len - 1] = '\0';
    bool is_open = str_starts (url, FILE_SCHEME) ? open_folder (s, err)
                   : str_starts (url, S3_SCHEME) ? open_s3 (s, err)
                                                 : open_server (s, err);
    return is_open ? steal_ptr (&s) : NULL;
}

void
record_store_free (struct record_store *s)
{
    if (s->folder)
        fs_root_free (s->folder);
    if (s->http)
        http_client_free (s->http);
    if (s->s3)
        s3_free (s->s3);
    free (s->url);
    free (s);
}

/* --- a server --- */

static char *
address_of (const struct record_store *s, const char *key)
{
    _cleanup_free_ char *escaped = s3_escape (key);
    return s->s3 ? s3_address (s->s3, key) : x_asprintf ("%s/%s", s->url, escaped);
}

/* What the request says of who asks. Its text is wiped by the caller. */
static char *
authorization (const struct record_store *s, struct mur_error **err)
{
    struct secret *token = secrets_dir_ask (RECORD_STORE_TOKEN);
    if (! token)
        return NULL;
    char *text = s->takes_token ? x_asprintf ("Bearer %s", secret_reveal (token)) : NULL;
    if (! text)
        mur_fail (err, E_IO_003, "%s: a token is sent over https alone", s->url);
    secret_free (token);
    return text;
}

struct asking {
    const char *method, *key;
    const void *data; /* NULL: none */
    size_t len, limit;
    struct cancel *cancel;
};

static bool
fetch_with (struct record_store *s, const struct asking *a, const struct http_header *headers,
            size_t count, struct http_response *out, struct mur_error **err)
{
    _cleanup_free_ char *url = address_of (s, a->key);
    const struct http_fetch fetch = {
        .request = { .method = a->method,
                     .url = url,
                     .headers = headers,
                     .header_count = count,
                     .body_kind = a->data ? HTTP_BODY_BUFFER : HTTP_BODY_NONE,
                     .body = a->data,
                     .body_len = a->len,
                     .connect_timeout_ms = CONNECT_MS,
                     .first_byte_timeout_ms = SILENCE_MS,
                     .between_bytes_timeout_ms = SILENCE_MS },
        .limit_bytes = a->limit,
        .cancel = a->cancel,
    };
    return http_fetch (s->http, &fetch, out, NULL, err);
}

static bool
fetch_signed (struct record_store *s, const struct asking *a, struct http_response *out,
              struct mur_error **err)
{
    _cleanup_s3_signed_ struct s3_signed signs = { 0 };
    if (! s3_sign (s->s3, s->http, a->method, a->key, a->data, a->len, &signs, err))
        return false;
    return fetch_with (s, a, signs.headers, signs.count, out, err);
}

static bool
ask (struct record_store *s, const struct asking *a, struct http_response *out,
     struct mur_error **err)
{
    struct mur_error *caught = NULL;
    if (s->s3)
        return fetch_signed (s, a, out, err);
    char *who = authorization (s, &caught);
    if (caught)
        return mur_propagate (err, caught);
    const struct http_header headers[] = {
        { "content-type", "application/octet-stream", 24 },
        { "authorization", who ? who : "", who ? strlen (who) : 0 },
    };
    bool was_asked = fetch_with (s, a, headers, who ? 2 : 1, out, err);
    if (who)
        secret_wipe (who, strlen (who));
    free (who);
    return was_asked;
}

static bool
refuse (const struct record_store *s, const char *key, const struct http_response *r,
        struct mur_error **err)
{
    if (s->s3)
        return s3_refuse (r, s->url, key, err);
    mur_fail (err, E_IO_003, "the records store %s answered %d to %s", s->url, r->status, key);
    return r->status == 401 || r->status == 403
               ? mur_hint (err, "its token is the file " RECORD_STORE_TOKEN " of --secrets-dir")
               : false;
}

/* --- objects --- */

static bool
put_file (struct record_store *s, const char *key, const void *data, size_t len,
          struct mur_error **err)
{
    const char *slash = strrchr (key, '/');
    _cleanup_free_ char *folder = x_strndup (key, slash ? (size_t)(slash - key) : 0);
    return (! *folder || fs_make_dirs (s->folder, folder, 0777, false, err)) &&
           fs_write (s->folder, key, data, len, 0666, false, err);
}

bool
record_store_put (struct record_store *s, const char *key, const void *data, size_t len,
                  struct cancel *cancel, struct mur_error **err)
{
    if (s->folder)
        return put_file (s, key, data, len, err);
    _cleanup_http_response_ struct http_response r = { 0 };
    const struct asking a = { "PUT", key, data ? data : "", len, REFUSAL_TEXT_MAX, cancel };
    if (! ask (s, &a, &r, err))
        return false;
    return (r.status >= 200 && r.status < 300) || refuse (s, key, &r, err);
}

/* A server of S3 says by 404, too, that there is no such bucket. */
static bool
is_nothing (const struct record_store *s, const struct http_response *r)
{
    return s->s3 ? s3_is_nothing (r) : r->status == 404;
}

bool
record_store_get (struct record_store *s, const char *key, size_t limit, struct buf *out,
                  struct mur_error **err)
{
    if (s->folder)
        return fs_exists (s->folder, key, NULL) && fs_read (s->folder, key, limit, out, err);
    _cleanup_http_response_ struct http_response r = { 0 };
    const struct asking a = { "GET", key, NULL, 0, limit, NULL };
    if (! ask (s, &a, &r, err) || is_nothing (s, &r))
        return false;
    if (r.status != 200)
        return refuse (s, key, &r, err);
    *out = r.body;
    r.body = (struct buf){ 0 };
    return true;
}
