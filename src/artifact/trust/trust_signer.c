/* SPDX-License-Identifier: Apache-2.0 */
#include "artifact/trust/trust_signer.h"

#include "base/alloc.h"

bool
trust_ring_read (struct trust_ring *out, struct mur_error **err)
{
    _cleanup_strv_ struct strv names = { 0 };
    *out = (struct trust_ring){ 0 };
    if (! ed25519_load (err) || ! trust_key_names (false, &names, err))
        return false;
    out->keys = x_new_array (struct trust_key, names.len + 1);
    for (size_t i = 0; i < names.len; i++)
        out->count += trust_key_read_trusted (names.items[i], &out->keys[out->count], NULL);
    return true;
}

void
trust_ring_clear (struct trust_ring *r)
{
    for (size_t i = 0; i < r->count; i++)
        trust_key_clear (&r->keys[i]);
    free (r->keys);
    *r = (struct trust_ring){ 0 };
}

const struct trust_key *
trust_ring_signer (const struct trust_ring *r, const struct signed_package *p,
                   const char *signature)
{
    size_t which;
    enum signature_verdict verdict =
        signature_judge (signature, p, r->keys, r->count, &which, NULL);
    return verdict == SIGNATURE_GOOD ? &r->keys[which] : NULL;
}

char *
trust_ring_text (const struct trust_ring *r, const struct signed_package *p, const char *signature)
{
    size_t which = 0;
    switch (signature_judge (signature, p, r->keys, r->count, &which, NULL)) {
    case SIGNATURE_GOOD:
        return x_strdup (r->keys[which].name);
    case SIGNATURE_FOREIGN:
        return x_strdup ("an unknown key");
    case SIGNATURE_BROKEN:
        break;
    }
    return x_strdup ("broken");
}
