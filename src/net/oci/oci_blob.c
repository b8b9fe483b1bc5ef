/* SPDX-License-Identifier: Apache-2.0 */
#include "net/oci/oci_blob.h"

#include "base/alloc.h"
#include "net/oci/oci_client_internal.h"
#include "net/url.h"

#include <string.h>

#define UPLOAD_TIMEOUT_MS 300000 /* a registry may look at all of it before it answers */

/* --- descriptors --- */

bool
oci_descriptor_read (const json_t *json, struct oci_descriptor *out)
{
    *out = (struct oci_descriptor){
        .media_type = json_get_string (json, "mediaType"),
        .digest = json_get_string (json, "digest"),
        .json = json,
    };
    return out->media_type && out->digest && oci_digest_is_valid (out->digest) &&
           json_get_u64 (json, "size", &out->size);
}

json_t *
oci_descriptor_json (const char *media_type, const char *digest, uint64_t size)
{
    json_t *d = json_object ();
    json_set_string (d, "mediaType", media_type);
    json_set_string (d, "digest", digest);
    json_set_u64 (d, "size", size);
    return d;
}

/* --- reading --- */

struct stream {
    oci_sink_fn *sink;
    void *ctx;
    struct sha256 *sha;
    uint64_t len, size;
    bool is_stopped;
};

static bool
take (void *ctx, const void *data, size_t len)
{
    struct stream *s = ctx;
    s->len += len;
    if (s->len > s->size)
        return false;
    sha256_add (s->sha, data, len);
    s->is_stopped = ! s->sink (s->ctx, data, len);
    return ! s->is_stopped;
}

static bool
judge (const struct oci_ref *ref, const struct oci_descriptor *blob, const struct stream *s,
       const char *hex, const struct http_response *r, struct mur_error **err)
{
    if (r->status == 404)
        return mur_fail (err, E_REG_001, "%s/%s: the blob %s is not there", ref->host,
                         ref->repository, blob->digest);
    if (r->status != 200)
        return oci_refuse (ref, r, err);
    if (s->len != s->size)
        return mur_fail (err, E_REG_006, "%s/%s: only %llu of %llu bytes of %s came", ref->host,
                         ref->repository, (unsigned long long)s->len, (unsigned long long)s->size,
                         blob->digest);
    return str_eq (hex, blob->digest + 7) ||
           mur_fail (err, E_REG_002, "%s/%s: the blob %s came with the digest sha256:%s", ref->host,
                     ref->repository, blob->digest, hex);
}

bool
oci_blob_stream (struct oci_client *c, const struct oci_ref *repository,
                 const struct oci_descriptor *blob, oci_sink_fn *sink, void *ctx,
                 struct mur_error **err)
{
    struct stream s = { .sink = sink, .ctx = ctx, .sha = sha256_new (), .size = blob->size };
    char hex[SHA256_HEX_LEN + 1];
    _cleanup_error_ struct mur_error *caught = NULL;
    _cleanup_http_response_ struct http_response r = { 0 };
    _cleanup_free_ char *url = oci_ask_url (c->asker, repository, "blobs/%s", blob->digest);
    const struct http_fetch fetch = {
        .request = { .method = "GET",
                     .url = url,
                     .connect_timeout_ms = OCI_TIMEOUT_MS,
                     .first_byte_timeout_ms = OCI_TIMEOUT_MS,
                     .between_bytes_timeout_ms = OCI_TIMEOUT_MS },
        .limit_bytes = OCI_MANIFEST_MAX, /* of words about a refusal */
        .redirect_limit = OCI_REDIRECTS_MAX,
        .sink = take,
        .sink_ctx = &s,
    };
    bool ok = oci_ask (c->asker, repository, &fetch, &r, &caught);
    sha256_finish (s.sha, hex);
    if (ok)
        return judge (repository, blob, &s, hex, &r, err);
    if (s.len <= s.size || s.is_stopped)
        return mur_propagate (err, steal_ptr (&caught));
    return mur_fail (
        err, E_REG_002, "%s/%s: the blob %s is longer than the %llu bytes it should be",
        repository->host, repository->repository, blob->digest, (unsigned long long)blob->size);
}

static bool
append (void *ctx, const void *data, size_t len)
{
    buf_append (ctx, data, len);
    return true;
}

bool
oci_blob_get (struct oci_client *c, const struct oci_ref *repository,
              const struct oci_descriptor *blob, size_t limit, struct buf *out,
              struct mur_error **err)
{
    if (blob->size > limit)
        return mur_fail (err, E_REG_013, "%s/%s: the blob %s has %llu bytes; at most %zu are read",
                         repository->host, repository->repository, blob->digest,
                         (unsigned long long)blob->size, limit);
    if (oci_blob_stream (c, repository, blob, append, out, err))
        return true;
    buf_free (out);
    return false;
}

/* --- writing --- */

static bool
upload (struct oci_client *c, const struct oci_ref *ref, const char *method, const char *url,
        const void *data, size_t len, struct http_response *out, struct mur_error **err)
{
    static const struct http_header headers[] = { { "content-type", "application/octet-stream",
                                                    24 } };
    const struct http_fetch fetch = {
        .request = { .method = method,
                     .url = url,
                     .headers = headers,
                     .header_count = data ? ARRAY_LEN (headers) : 0,
                     .body_kind = HTTP_BODY_BUFFER,
                     .body = data ? data : "",
                     .body_len = len,
                     .connect_timeout_ms = OCI_TIMEOUT_MS,
                     .first_byte_timeout_ms = UPLOAD_TIMEOUT_MS,
                     .between_bytes_timeout_ms = OCI_TIMEOUT_MS },
        .limit_bytes = OCI_MANIFEST_MAX,
    };
    return oci_ask (c->asker, ref, &fetch, out, err);
}

/* True when it is there; false with or without *err. */
static bool
is_there (struct oci_client *c, const struct oci_ref *ref, const char *digest,
          struct mur_error **err)
{
    _cleanup_http_response_ struct http_response r = { 0 };
    _cleanup_free_ char *url = oci_ask_url (c->asker, ref, "blobs/%s", digest);
    const struct http_fetch fetch = {
        .request = { .method = "HEAD",
                     .url = url,
                     .connect_timeout_ms = OCI_TIMEOUT_MS,
                     .first_byte_timeout_ms = OCI_TIMEOUT_MS },
        .limit_bytes = OCI_MANIFEST_MAX,
    };
    return oci_ask (c->asker, ref, &fetch, &r, err) && r.status == 200;
}

/* Where the bytes go, with their digest. Owned. */
static char *
upload_url (struct oci_client *c, const struct oci_ref *ref, const char *digest,
            struct mur_error **err)
{
    _cleanup_http_response_ struct http_response r = { 0 };
    _cleanup_free_ char *url = oci_ask_url (c->asker, ref, "blobs/uploads/");
    if (! upload (c, ref, "POST", url, NULL, 0, &r, err))
        return NULL;
    const char *location = http_response_header (&r, "location");
    if (r.status != 202 || ! location)
        return oci_refuse (ref, &r, err), NULL;
    _cleanup_free_ char *target = url_resolve (url, location);
    if (! target || ! url_keeps_secure (url, target))
        return mur_fail (err, E_REG_006, "%s/%s: an upload may not go where the registry says",
                         ref->host, ref->repository),
               NULL;
    return x_asprintf ("%s%cdigest=sha256%%3A%s", target, strchr (target, '?') ? '&' : '?',
                       digest + 7);
}

bool
oci_blob_put (struct oci_client *c, const struct oci_ref *repository, const void *data, size_t len,
              const char *digest, struct mur_error **err)
{
    struct mur_error *caught = NULL;
    if (is_there (c, repository, digest, &caught))
        return true;
    if (caught)
        return mur_propagate (err, caught);
    _cleanup_free_ char *url = upload_url (c, repository, digest, err);
    _cleanup_http_response_ struct http_response r = { 0 };
    if (! url || ! upload (c, repository, "PUT", url, data, len, &r, err))
        return false;
    return r.status == 201 || r.status == 204 || oci_refuse (repository, &r, err);
}
