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
