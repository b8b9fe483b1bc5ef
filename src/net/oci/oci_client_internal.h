/* SPDX-License-Identifier: Apache-2.0
 *
 * What a client of registries holds, for the files that ask through it.
 */
#pragma once

#include "net/oci/oci_ask.h"

#define OCI_TIMEOUT_MS    30000
#define OCI_REDIRECTS_MAX 5

struct oci_client {
    struct oci_asker *asker;
};

/* One GET of the API. Any status but 401 and 403 is a success. E-REG-006, E-REG-012. */
bool oci_get (struct oci_client *c, const struct oci_ref *ref, const char *url, const char *accept,
              struct http_response *out, struct mur_error **err);
