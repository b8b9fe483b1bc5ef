/* SPDX-License-Identifier: Apache-2.0 */
#include "net/oci/oci_client.h"

#include "base/alloc.h"
#include "net/oci/oci_client_internal.h"
#include "net/oci/oci_get.h"
#include "net/oci/oci_pages.h"
#include "net/url.h"

#include <string.h>

struct oci_client *
oci_client_new (const struct oci_options *options)
{
    struct oci_client *c = x_new0 (struct oci_client);
    c->asker = oci_asker_new (options);
    return c;
}

void
oci_client_free (struct oci_client *c)
{
    oci_asker_free (c->asker);
    free (c);
}

void
oci_client_set_cancel (struct oci_client *c, struct cancel *cancel)
{
    oci_asker_set_cancel (c->asker, cancel);
}

void
oci_manifest_free (struct oci_manifest *m)
{
    json_decref (m->json);
    free (m->media_type);
    free (m->text);
    free (m);
}

static const char *
wanted (const struct oci_ref *ref)
{
    if (ref->digest)
        return ref->digest;
    return ref->tag ? ref->tag : "latest";
}

/* --- manifests --- */

static const char manifest_types[] =
    OCI_TYPE_MANIFEST ", " OCI_TYPE_INDEX ", application/vnd.docker.distribution.manifest.v2+json, "
                      "application/vnd.docker.distribution.manifest.list.v2+json";

/* The type without its parameters. Owned. */
static char *
media_type_of (const struct http_response *r, const json_t *json)
{
    const char *said = json_get_string (json, "mediaType");
    if (! said)
        said = http_response_header (r, "content-type");
    return said ? x_strndup (said, strcspn (said, "; \t")) : x_strdup ("");
}

static bool
is_manifest_type (const char *type)
{
    size_t len = strlen (type);
    for (const char *at = manifest_types; *at; at += strspn (at, ", ")) {
        size_t one = strcspn (at, ",");
        if (one == len && strncmp (at, type, len) == 0)
            return true;
        at += one;
    }
    return false;
}

static struct oci_manifest *
read_manifest (const struct oci_ref *ref, struct http_response *r, struct mur_error **err)
{
    _cleanup_oci_manifest_ struct oci_manifest *m = x_new0 (struct oci_manifest);
    _cleanup_free_ char *name = oci_ref_text (ref);
    m->len = r->body.len;
    m->text = buf_steal (&r->body);
    oci_digest_of (m->text, m->len, m->digest);
    if (ref->digest && ! str_eq (ref->digest, m->digest))
        return mur_fail (err, E_REG_002, "%s: the registry gave a manifest with the digest %s",
                         name, m->digest),
               NULL;
    m->json = json_parse (m->text, m->len, name, E_REG_013, NULL);
    if (! json_is_object (m->json))
        return mur_fail (err, E_REG_013, "%s: its manifest is no JSON object", name), NULL;
    m->media_type = media_type_of (r, m->json);
    if (! is_manifest_type (m->media_type))
        return mur_fail (err, E_REG_013, "%s: \"%.100s\" is no type of manifest that is read here",
                         name, m->media_type),
               NULL;
    return steal_ptr (&m);
}

/* The answer is larger than what is read: said as what it is. */
static bool
hint_size (struct mur_error *caught, const struct oci_ref *ref, struct mur_error **err)
{
    if (! oci_is_too_large (caught))
        return mur_propagate (err, caught);
    mur_error_free (caught);
    _cleanup_free_ char *name = oci_ref_text (ref);
    return mur_fail (err, E_REG_013, "%s: its manifest is larger than %zu bytes", name,
                     OCI_MANIFEST_MAX);
}

struct oci_manifest *
oci_manifest_get (struct oci_client *c, const struct oci_ref *ref, struct mur_error **err)
{
    struct mur_error *caught = NULL;
    _cleanup_http_response_ struct http_response r = { 0 };
    _cleanup_free_ char *url = oci_ask_url (c->asker, ref, "manifests/%s", wanted (ref));
    if (! oci_get (c, ref, url, manifest_types, &r, &caught))
        return hint_size (caught, ref, err), NULL;
    if (r.status == 404)
        return NULL;
    if (r.status != 200)
        return oci_refuse (ref, &r, err), NULL;
    return read_manifest (ref, &r, err);
}

char *
oci_tag_digest (struct oci_client *c, const struct oci_ref *ref, struct mur_error **err)
{
    _cleanup_http_response_ struct http_response r = { 0 };
    _cleanup_free_ char *url = oci_ask_url (c->asker, ref, "manifests/%s", wanted (ref));
    if (! oci_head (c, ref, url, manifest_types, &r, err) || r.status == 404)
        return NULL;
    if (r.status != 200)
        return oci_refuse (ref, &r, err), NULL;
    const char *digest = http_response_header (&r, "docker-content-digest");
    if (digest && oci_digest_is_valid (digest))
        return x_strdup (digest);
    _cleanup_oci_manifest_ struct oci_manifest *m = oci_manifest_get (c, ref, err);
    return m ? x_strdup (m->digest) : NULL;
}

/* --- tags --- */

struct tags {
    const struct oci_ref *of;
    struct strv *out;
};

static bool
take_tags (void *ctx, const struct http_response *r, struct mur_error **err)
{
    const struct tags *t = ctx;
    const char *body = r->body.data ? r->body.data : "";
    _cleanup_json_ json_t *json = json_parse (body, r->body.len, "tags", E_REG_013, NULL);
    const json_t *tags = json_object_get (json, "tags");
    size_t i;
    json_t *tag;
    if (! json || (tags && ! json_is_array (tags) && ! json_is_null (tags)))
        return mur_fail (err, E_REG_013, "%s/%s: the registry's list of tags is none", t->of->host,
                         t->of->repository);
    json_array_foreach (tags, i, tag) if (json_is_string (tag))
        strv_push (t->out, json_string_value (tag));
    return true;
}

bool
oci_tags (struct oci_client *c, const struct oci_ref *repository, struct strv *out,
          struct mur_error **err)
{
    struct tags t = { repository, out };
    const struct oci_listing tags = { .what = "list of tags",
                                      .hint = "name the version to install: <name>@<version>",
                                      .accept = "application/json",
                                      .take = take_tags,
                                      .ctx = &t };
    char *url = oci_ask_url (c->asker, repository, "tags/list?n=1000");
    return oci_pages (c, repository, url, &tags, err);
}

/* --- writing --- */

bool
oci_manifest_put (struct oci_client *c, const struct oci_ref *repository, const struct oci_put *put,
                  bool *keeps_list, struct mur_error **err)
{
    _cleanup_http_response_ struct http_response r = { 0 };
    _cleanup_free_ char *url = oci_ask_url (c->asker, repository, "manifests/%s", put->reference);
    const struct http_header headers[] = { { "content-type", put->media_type,
                                             strlen (put->media_type) } };
    const struct http_fetch fetch = {
        .request = { .method = "PUT",
                     .url = url,
                     .headers = headers,
                     .header_count = ARRAY_LEN (headers),
                     .body_kind = HTTP_BODY_BUFFER,
                     .body = put->text,
                     .body_len = put->len,
                     .connect_timeout_ms = OCI_TIMEOUT_MS,
                     .first_byte_timeout_ms = OCI_TIMEOUT_MS,
                     .between_bytes_timeout_ms = OCI_TIMEOUT_MS },
        .limit_bytes = OCI_MANIFEST_MAX,
    };
    if (! oci_ask (c->asker, repository, &fetch, &r, err))
        return false;
    if (keeps_list)
        *keeps_list = http_response_header (&r, "oci-subject") != NULL;
    return r.status == 201 || r.status == 200 || oci_refuse (repository, &r, err);
}
