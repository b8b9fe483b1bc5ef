/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/registry/oci_fetch.h"

#include "base/alloc.h"
#include "manifest/settings/artifact_manifest.h"

#include <string.h>

/* The manifest for a platform in an index. */
static struct oci_manifest *
through_index (struct oci_client *c, const struct oci_ref *ref, const struct oci_manifest *index,
               const char *platform, struct mur_error **err)
{
    struct oci_descriptor at = { 0 };
    _cleanup_free_ char *name = oci_ref_text (ref);
    if (! oci_index_find (index, platform, &at)) {
        _cleanup_free_ char *there = oci_index_platforms (index);
        mur_fail (err, E_REG_001, "%s has no payload for %s; published: %s", name, platform, there);
        return NULL;
    }
    struct oci_ref child = *ref;
    child.tag = NULL;
    child.digest = (char *)(uintptr_t)at.digest;
    struct mur_error *caught = NULL;
    struct oci_manifest *m = oci_manifest_get (c, &child, &caught);
    if (m)
        return m;
    if (caught)
        mur_propagate (err, caught);
    else
        mur_fail (err, E_REG_001, "%s: the manifest %s for %s is gone", name, at.digest, platform);
    return NULL;
}

bool
oci_package_find (struct oci_client *c, const struct oci_ref *ref, const char *platform,
                  struct oci_package *out, struct mur_error **err)
{
    *out = (struct oci_package){ 0 };
    _cleanup_free_ char *name = oci_ref_text (ref);
    _cleanup_oci_manifest_ struct oci_manifest *m = oci_manifest_get (c, ref, err);
    if (! m)
        return false;
    if (! oci_is_index (m))
        return oci_package_read (m, name, out, err);
    _cleanup_oci_manifest_ struct oci_manifest *own = through_index (c, ref, m, platform, err);
    if (! own || ! oci_package_read (own, name, out, err))
        return false;
    out->platform = x_strdup (platform);
    memcpy (out->index_digest, m->digest, sizeof out->index_digest);
    oci_index_packages (m, &out->platforms);
    return true;
}

struct package *
oci_package_fetch (struct oci_client *c, const struct oci_ref *repository,
                   const struct oci_package *p, const char *label, struct mur_error **err)
{
    _cleanup_buf_ struct buf bytes = { 0 };
    const struct oci_descriptor layer = { .media_type = OCI_TYPE_PACKAGE,
                                          .digest = p->layer_digest,
                                          .size = p->size };
    if (! oci_blob_get (c, repository, &layer, PACKAGE_FILE_MAX, &bytes, err))
        return NULL;
    size_t len = bytes.len;
    _cleanup_package_ struct package *package = package_from_bytes (buf_steal (&bytes), len, label);
    _cleanup_error_ struct mur_error *caught = NULL;
    if (! package_open_zip (package, &caught))
        return mur_fail (err, E_IO_003, "%s does not open as an artifact: %s", label,
                         caught->message),
               NULL;
    if (p->version && ! str_eq (p->version, package->manifest->version))
        return mur_fail (err, E_REG_002, "%s: its manifest says version %s, and it is packed as %s",
                         label, p->version, package->manifest->version),
               NULL;
    return steal_ptr (&package);
}
