/* SPDX-License-Identifier: Apache-2.0
 *
 * A package out of an OCI registry.
 *
 * Always true: the package's bytes were compared with the digest the manifest gives before anything
 * is read of them; nothing is written.
 */
#pragma once

#include "artifact/registry/oci_package.h"

/* The package a reference leads to, through an index to <platform>'s where there is one. False
 * without *err: there is no such tag or digest. E-REG-001 (an index without this platform),
 * E-REG-002, E-REG-006, E-REG-012, E-REG-013. */
bool oci_package_find (struct oci_client *c, const struct oci_ref *ref, const char *platform,
                       struct oci_package *out, struct mur_error **err);
/* Its bytes, opened. E-REG-001, E-REG-002, E-REG-006, E-REG-012, E-IO-003. <label> is for messages.
 */
struct package *
oci_package_fetch (struct oci_client *c, const struct oci_ref *repository,
                   const struct oci_package *p, const char *label, struct mur_error **err);
