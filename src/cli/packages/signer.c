/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/packages/signer.h"

#include "artifact/names/name.h"
#include "base/alloc.h"

char *
store_signer (const struct store *store, const char *name, const char *version)
{
    _cleanup_payload_ struct store_payload payload = { 0 };
    _cleanup_trust_ring_ struct trust_ring ring = { 0 };
    if (store_find (store, name, version, NULL, &payload, NULL) != STORE_FOUND)
        return NULL;
    _cleanup_free_ char *signature = package_signature_beside (payload.path);
    if (! signature)
        return NULL;
    const struct signed_package what = { name_bare (name), version, payload.sha256 };
    return trust_ring_read (&ring, NULL) ? trust_ring_text (&ring, &what, signature)
                                         : x_strdup ("an unknown key");
}
