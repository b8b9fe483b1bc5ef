/* SPDX-License-Identifier: Apache-2.0
 *
 * A package into an OCI registry.
 *
 * Always true: a tag that is a version keeps its bytes for ever; a tag that is not (`latest`) may
 * move; what is not whole in the registry has no tag.
 */
#pragma once

#include "artifact/registry/oci_package.h"

struct oci_published {
    char digest[OCI_DIGEST_LEN + 1];     /* of the package's manifest */
    char tag_digest[OCI_DIGEST_LEN + 1]; /* what the tag leads to: that, or an index of platforms */
    uint64_t size;                       /* bytes of the package's manifest */
    char *reference;                     /* "host/repository:tag" */
    bool was_there;                      /* these very bytes, already */
};
void oci_published_clear (struct oci_published *p);
#define _cleanup_oci_published_ _cleanup_ (oci_published_clear)

/* Publishes an opened package; without a tag in <ref> under its version ('+' written '_'). With
 * <platform> the tag leads to an index of platforms, to which it is added. E-REG-003 (other bytes
 * under this version, or somebody else's at the same moment), E-REG-004, E-REG-006, E-REG-012,
 * E-REG-013. */
bool oci_publish (struct oci_client *c, const struct oci_ref *ref, struct package *p,
                  const char *platform, struct oci_published *out, struct mur_error **err);
/* The tag of a version. Owned. */
char *oci_version_tag (const char *version);
