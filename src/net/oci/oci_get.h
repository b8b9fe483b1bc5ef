/* SPDX-License-Identifier: Apache-2.0
 *
 * One question to the API of a registry, with a short answer.
 */
#pragma once

#include "net/http_fetch.h"
#include "net/oci/oci_client.h"

/* Any status but 401 and 403 is a success. E-REG-006, E-REG-012. */
bool oci_get (struct oci_client *c, const struct oci_ref *ref, const char *url, const char *accept,
              struct http_response *out, struct mur_error **err);
bool oci_head (struct oci_client *c, const struct oci_ref *ref, const char *url, const char *accept,
               struct http_response *out, struct mur_error **err);

/* Whether one failed since its answer is longer than what is read. */
bool oci_is_too_large (const struct mur_error *err);
