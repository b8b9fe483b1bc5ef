/* SPDX-License-Identifier: Apache-2.0
 *
 * The signatures of a package in an OCI registry: manifests whose subject is the package's, found
 * by the registry's list of referrers or by the tag that stands for it.
 *
 * Always true: what is handed out is an envelope as it lies there, judged by nobody.
 */
#pragma once

#include "artifact/registry/oci_package.h"

/* The envelope of the package whose manifest is <digest>, with the signatures of all there are.
 * Owned; NULL without *err: there is none. E-REG-001, E-REG-002, E-REG-006, E-REG-012, E-REG-013.
 */
char *oci_signature_get (struct oci_client *c, const struct oci_ref *repository, const char *digest,
                         struct mur_error **err);
/* Adds one there; <size> bytes has the manifest of <digest>. E-REG-006,
 * E-REG-012. */
bool oci_signature_put (struct oci_client *c, const struct oci_ref *repository, const char *digest,
                        uint64_t size, const char *signature, struct mur_error **err);
