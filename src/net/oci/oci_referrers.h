/* SPDX-License-Identifier: Apache-2.0
 *
 * What refers to a manifest of an OCI registry (its signatures, for one): the list of referrers of
 * the distribution specification 1.1, and for a registry without one the index under the tag
 * "sha256-<hex>" that stands for it.
 */
#pragma once

#include "net/oci/oci_client.h"

#define OCI_REFERRERS_MAX 32 /* of one kind that are read; the last of a list are the newest */

/* The digests of the manifests of <artifact_type> that refer to <digest>, in the list's order.
 * E-REG-006, E-REG-012, E-REG-013. */
bool oci_referrers (struct oci_client *c, const struct oci_ref *repository, const char *digest,
                    const char *artifact_type, struct strv *out, struct mur_error **err);
/* Puts a manifest that refers to <digest>, and into the index under the tag where the registry
 * keeps no list. E-REG-006, E-REG-012, E-REG-013. */
bool oci_referrer_put (struct oci_client *c, const struct oci_ref *repository, const char *digest,
                       const char *artifact_type, const char *manifest, struct mur_error **err);
