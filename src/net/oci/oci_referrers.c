/* SPDX-License-Identifier: Apache-2.0 */
#include "net/oci/oci_referrers.h"

#include "base/alloc.h"
#include "net/oci/oci_blob.h"
#include "net/oci/oci_client_internal.h"
#include "net/oci/oci_pages.h"

#include <string.h>

static void
read_list (const json_t *index, const char *artifact_type, struct strv *out)
{
    size_t i;
    json_t *item;
    struct oci_descriptor at;
    json_array_foreach (json_object_get (index, "manifests"), i,
                        item) if (str_eq (json_get_string (item, "artifactType"), artifact_type) &&
                                  oci_descriptor_read (item, &at)) strv_push (out, at.digest);
}

/* Of more than are looked at, the last. */
static void
keep_last (struct strv *digests)
{
    struct strv kept = { 0 };
    size_t len = digests->len;
    for (size_t i = len > OCI_REFERRERS_MAX ? len - OCI_REFERRERS_MAX : 0; i < len; i++)
        strv_push (&kept, digests->items[i]);
    strv_free (digests);
    *digests = kept;
}

/* The index under the tag that stands for the list. NULL without *err: there is none. */
static struct oci_manifest *
tagged_list (struct oci_client *c, const struct oci_ref *repository, const char *digest, char **tag,
             struct mur_error **err)
{
    *tag = x_asprintf ("sha256-%s", digest + 7);
    const struct oci_ref ref = { .host = repository->host,
                                 .repository = repository->repository,
                                 .tag = *tag };
    return oci_manifest_get (c, &ref, err);
}

struct referrers {
    const char *artifact_type;
    struct strv *out;
    bool is_list;
};

static bool
take_referrers (void *ctx, const struct http_response *r, struct mur_error **err)
{
    (void)err;
    struct referrers *l = ctx;
    _cleanup_json_ json_t *json =
        json_parse (r->body.data ? r->body.data : "", r->body.len, "referrers", E_REG_013, NULL);
    l->is_list |= json_is_array (json_object_get (json, "manifests"));
    read_list (json, l->artifact_type, l->out);
    return true;
}

bool
oci_referrers (struct oci_client *c, const struct oci_ref *repository, const char *digest,
               const char *artifact_type, struct strv *out, struct mur_error **err)
{
    struct referrers l = { .artifact_type = artifact_type, .out = out };
    const struct oci_listing listing = { .what = "list of what refers to a package",
                                         .accept = OCI_TYPE_INDEX,
                                         .is_optional = true,
                                         .take = take_referrers,
                                         .ctx = &l };
    struct mur_error *caught = NULL;
    _cleanup_free_ char *tag = NULL;
    if (! oci_pages (c, repository, oci_ask_url (c->asker, repository, "referrers/%s", digest),
                     &listing, err))
        return false;
    if (! l.is_list) {
        _cleanup_oci_manifest_ struct oci_manifest *list =
            tagged_list (c, repository, digest, &tag, &caught);
        if (caught)
            return mur_propagate (err, caught);
        if (list)
            read_list (list->json, artifact_type, out);
    }
    keep_last (out);
    return true;
}

/* The text of <list> (NULL: a new one) with one more entry. Owned. */
static char *
list_with (const struct oci_manifest *list, const char *artifact_type, const char *digest,
           uint64_t size)
{
    _cleanup_json_ json_t *index = list ? json_deep_copy (list->json) : json_object ();
    json_t *entry = oci_descriptor_json (OCI_TYPE_MANIFEST, digest, size);
    if (! json_is_array (json_object_get (index, "manifests"))) {
        json_set_u64 (index, "schemaVersion", 2);
        json_set_string (index, "mediaType", OCI_TYPE_INDEX);
        json_object_set_new (index, "manifests", json_array ());
    }
    json_set_string (entry, "artifactType", artifact_type);
    json_array_append_new (json_object_get (index, "manifests"), entry);
    return json_text (index, JSON_TEXT_ORDERED);
}

static bool
put_into_list (struct oci_client *c, const struct oci_ref *repository, const char *digest,
               const char *artifact_type, const char *own, uint64_t size, struct mur_error **err)
{
    _cleanup_free_ char *tag = NULL;
    _cleanup_strv_ struct strv there = { 0 };
    struct mur_error *caught = NULL;
    _cleanup_oci_manifest_ struct oci_manifest *list =
        tagged_list (c, repository, digest, &tag, &caught);
    if (caught)
        return mur_propagate (err, caught);
    if (list)
        read_list (list->json, artifact_type, &there);
    if (strv_contains (&there, own))
        return true;
    _cleanup_free_ char *text = list_with (list, artifact_type, own, size);
    const struct oci_put put = {
        .reference = tag, .media_type = OCI_TYPE_INDEX, .text = text, .len = strlen (text)
    };
    return oci_manifest_put (c, repository, &put, NULL, err);
}

bool
oci_referrer_put (struct oci_client *c, const struct oci_ref *repository, const char *digest,
                  const char *artifact_type, const char *manifest, struct mur_error **err)
{
    char own[OCI_DIGEST_LEN + 1];
    size_t len = strlen (manifest);
    bool keeps_list = false;
    oci_digest_of (manifest, len, own);
    const struct oci_put put = {
        .reference = own, .media_type = OCI_TYPE_MANIFEST, .text = manifest, .len = len
    };
    return oci_manifest_put (c, repository, &put, &keeps_list, err) &&
           (keeps_list || put_into_list (c, repository, digest, artifact_type, own, len, err));
}
