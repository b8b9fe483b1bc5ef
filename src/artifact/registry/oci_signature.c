/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/registry/oci_signature.h"

#include "base/alloc.h"

#include <string.h>

#define TYPE_SIGNATURE "application/vnd.murmur.signature.v1+json"
#define TYPE_ENVELOPE  "application/vnd.dsse.envelope.v1+json"
#define TYPE_EMPTY     "application/vnd.oci.empty.v1+json"

static struct oci_ref
place_of (const struct oci_ref *repository, const char *digest, char **tag)
{
    *tag = x_asprintf ("sha256-%s.sig", digest + 7);
    return (struct oci_ref){ .host = repository->host,
                             .repository = repository->repository,
                             .tag = *tag };
}

char *
oci_signature_get (struct oci_client *c, const struct oci_ref *repository, const char *digest,
                   struct mur_error **err)
{
    _cleanup_free_ char *tag = NULL;
    const struct oci_ref ref = place_of (repository, digest, &tag);
    _cleanup_oci_manifest_ struct oci_manifest *m = oci_manifest_get (c, &ref, err);
    struct oci_descriptor layer = { 0 };
    const json_t *layers = m ? json_object_get (m->json, "layers") : NULL;
    if (! m || ! str_eq (json_get_string (m->json, "artifactType"), TYPE_SIGNATURE))
        return NULL;
    if (json_array_size (layers) != 1 || ! oci_descriptor_read (json_array_get (layers, 0), &layer))
        return mur_fail (err, E_REG_013, "%s/%s:%s has no signature as its one layer", ref.host,
                         ref.repository, tag),
               NULL;
    struct buf text = { 0 };
    return oci_blob_get (c, repository, &layer, PACKAGE_SIGNATURE_MAX, &text, err)
               ? buf_steal (&text)
               : NULL;
}

static char *
manifest_of (const char *digest, uint64_t size, const char *envelope_digest, size_t len,
             const char *empty_digest)
{
    _cleanup_json_ json_t *m = json_object ();
    json_t *layers = json_array ();
    json_array_append_new (layers, oci_descriptor_json (TYPE_ENVELOPE, envelope_digest, len));
    json_set_u64 (m, "schemaVersion", 2);
    json_set_string (m, "mediaType", OCI_TYPE_MANIFEST);
    json_set_string (m, "artifactType", TYPE_SIGNATURE);
    json_object_set_new (m, "config", oci_descriptor_json (TYPE_EMPTY, empty_digest, 2));
    json_object_set_new (m, "layers", layers);
    json_object_set_new (m, "subject", oci_descriptor_json (OCI_TYPE_MANIFEST, digest, size));
    return json_text (m, JSON_TEXT_ORDERED);
}

bool
oci_signature_put (struct oci_client *c, const struct oci_ref *repository, const char *digest,
                   uint64_t size, const char *signature, struct mur_error **err)
{
    static const char empty[] = "{}";
    char envelope_digest[OCI_DIGEST_LEN + 1], empty_digest[OCI_DIGEST_LEN + 1];
    size_t len = strlen (signature);
    _cleanup_free_ char *tag = NULL;
    const struct oci_ref ref = place_of (repository, digest, &tag);
    oci_digest_of (signature, len, envelope_digest);
    oci_digest_of (empty, 2, empty_digest);
    _cleanup_free_ char *manifest = manifest_of (digest, size, envelope_digest, len, empty_digest);
    const struct oci_put put = { .reference = tag,
                                 .media_type = OCI_TYPE_MANIFEST,
                                 .text = manifest,
                                 .len = strlen (manifest) };
    return oci_blob_put (c, &ref, signature, len, envelope_digest, err) &&
           oci_blob_put (c, &ref, empty, 2, empty_digest, err) &&
           oci_manifest_put (c, &ref, &put, err);
}
