/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/registry/oci_signature.h"

#include "artifact/trust/signature.h"
#include "base/alloc.h"
#include "net/oci/oci_referrers.h"

#include <string.h>

#define TYPE_SIGNATURE "application/vnd.murmur.signature.v1+json"
#define TYPE_ENVELOPE  "application/vnd.dsse.envelope.v1+json"

/* The envelope a manifest of ours holds. */
static char *
envelope_of (struct oci_client *c, const struct oci_ref *repository, const char *digest,
             struct mur_error **err)
{
    const struct oci_ref ref = { .host = repository->host,
                                 .repository = repository->repository,
                                 .digest = (char *)(uintptr_t)digest };
    _cleanup_free_ char *name = oci_ref_text (&ref);
    struct mur_error *caught = NULL;
    _cleanup_oci_manifest_ struct oci_manifest *m = oci_manifest_get (c, &ref, &caught);
    struct oci_descriptor layer = { 0 };
    const json_t *layers = m ? json_object_get (m->json, "layers") : NULL;
    if (caught)
        return mur_propagate (err, caught), NULL;
    if (! m || json_array_size (layers) != 1 ||
        ! oci_descriptor_read (json_array_get (layers, 0), &layer))
        return mur_fail (err, E_REG_013, "%s has no signature as its one layer", name), NULL;
    struct buf text = { 0 };
    if (oci_blob_get (c, repository, &layer, PACKAGE_SIGNATURE_MAX, &text, err))
        return text.data ? buf_steal (&text) : x_strdup ("");
    buf_free (&text);
    return NULL;
}

char *
oci_signature_get (struct oci_client *c, const struct oci_ref *repository, const char *digest,
                   struct mur_error **err)
{
    _cleanup_strv_ struct strv digests = { 0 };
    _cleanup_free_ char *all = NULL;
    if (! oci_referrers (c, repository, digest, TYPE_SIGNATURE, &digests, err))
        return NULL;
    for (size_t i = 0; i < digests.len; i++) {
        _cleanup_free_ char *one = envelope_of (c, repository, digests.items[i], err);
        char *both = one && all ? signature_join (all, one) : NULL;
        if (! one)
            return NULL;
        free (all);
        all = both ? both : steal_ptr (&one);
    }
    return steal_ptr (&all);
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
    json_object_set_new (m, "config", oci_descriptor_json (OCI_TYPE_EMPTY, empty_digest, 2));
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
    oci_digest_of (signature, len, envelope_digest);
    oci_digest_of (empty, 2, empty_digest);
    _cleanup_free_ char *manifest = manifest_of (digest, size, envelope_digest, len, empty_digest);
    return oci_blob_put (c, repository, signature, len, envelope_digest, err) &&
           oci_blob_put (c, repository, empty, 2, empty_digest, err) &&
           oci_referrer_put (c, repository, digest, TYPE_SIGNATURE, manifest, err);
}
