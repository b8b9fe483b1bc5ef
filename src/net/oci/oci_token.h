/* SPDX-License-Identifier: Apache-2.0
 *
 * From the challenge of a registry to what is shown to it: Basic credentials, or a token from the
 * server the challenge names.
 */
#pragma once

#include "net/http_fetch.h"
#include "net/oci/oci_login.h"
#include "net/oci/oci_ref.h"

struct oci_token_request {
    struct http_client *http;
    struct cancel *cancel; /* may be NULL */
    const struct oci_ref *ref;
    const char *registry_url; /* an address of the registry's own */
    const char *challenge;    /* the values of its WWW-Authenticate; NULL: none */
};

/* The value of an `authorization` header; NULL without *err: we have nothing to show. E-REG-006,
 * E-REG-012. */
struct secret *oci_token_get (const struct oci_token_request *q, struct mur_error **err);
