/* SPDX-License-Identifier: Apache-2.0 */
#include "net/oci/oci_get.h"

#include "net/oci/oci_client_internal.h"

#include <string.h>

static bool
ask (struct oci_client *c, const struct oci_ref *ref, const char *method, const char *url,
     const char *accept, struct http_response *out, struct mur_error **err)
{
    const struct http_header headers[] = { { "accept", accept, strlen (accept) } };
    const struct http_fetch fetch = {
        .request = { .method = method,
                     .url = url,
                     .headers = headers,
                     .header_count = ARRAY_LEN (headers),
                     .connect_timeout_ms = OCI_TIMEOUT_MS,
                     .first_byte_timeout_ms = OCI_TIMEOUT_MS,
                     .between_bytes_timeout_ms = OCI_TIMEOUT_MS },
        .limit_bytes = OCI_MANIFEST_MAX,
        .redirect_limit = OCI_REDIRECTS_MAX,
    };
    return oci_ask (c->asker, ref, &fetch, out, err);
}

bool
oci_get (struct oci_client *c, const struct oci_ref *ref, const char *url, const char *accept,
         struct http_response *out, struct mur_error **err)
{
    return ask (c, ref, "GET", url, accept, out, err);
}

bool
oci_head (struct oci_client *c, const struct oci_ref *ref, const char *url, const char *accept,
          struct http_response *out, struct mur_error **err)
{
    return ask (c, ref, "HEAD", url, accept, out, err);
}

bool
oci_is_too_large (const struct mur_error *err)
{
    return strstr (err->message, "too large") != NULL;
}
