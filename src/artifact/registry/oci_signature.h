/* SPDX-License-Identifier: Apache-2.0
 *
 * The signature of a package in an OCI registry: a manifest whose subject is the package's, under
 * the tag sha256-<digest>.sig, so that a registry without a list of referrers has it as well.
 *
 * Always true: what is handed out is an envelope as it lies there, judged by nobody.
 */
#pragma once

#include "artifact/registry/oci_package.h"

/* The envelope of the package whose manifest is <digest>. Owned; NULL without *err: there is none.
 * E-REG-002, E-REG-006, E-REG-012, E-REG-013. */
char *oci_signature_get (struct oci_client *c, const struct oci_ref *repository, const char *digest,
                         struct mur_error **err);
/* Puts one there, in place of an older one; <size> bytes has the manifest of <digest>. E-REG-006,
 * E-REG-012. */
bool oci_signature_put (struct oci_client *c, const struct oci_ref *repository, const char *digest,
                        uint64_t size, const char *signature, struct mur_error **err);
