/* SPDX-License-Identifier: Apache-2.0
 *
 * Images of layouts to a registry and back.
 *
 * Always true: every blob was compared with its digest on its way; a tag and a layout's index come
 * last.
 */
#pragma once

#include "deploy/image.h"

/* Carries the image of a layout to <ref>, which has a tag. E-REG-002, E-REG-003 (the tag leads
 * elsewhere afterwards), E-REG-006, E-REG-012, E-REG-013. */
bool image_push (struct oci_client *c, const struct oci_ref *ref, const char *path,
                 struct image_made *out, struct mur_error **err);
/* Carries the image of <ref>, for <platform> where there are several, to a layout; what is there of
 * it already stays. E-REG-001, E-REG-002, E-REG-006, E-REG-012, E-REG-013, E-IO-003. */
bool image_pull (struct oci_client *c, const struct oci_ref *ref, const char *platform,
                 const char *path, struct image_made *out, struct mur_error **err);
