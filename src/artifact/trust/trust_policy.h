/* SPDX-License-Identifier: Apache-2.0
 *
 * Which artifacts must be signed, and by whom: trust.require of ~/.murmur/config.yaml
 * (spec/artifacts.md 8.2).
 *
 * Always true: read once, when the first artifact is asked about; what cannot be read refuses, it
 * is never taken for no policy.
 */
#pragma once

#include "artifact/trust/trust_signer.h"

struct trust_policy;

/* Reads nothing yet. */
struct trust_policy *trust_policy_new (void);
void trust_policy_free (struct trust_policy *p);
DEFINE_CLEANUP (struct trust_policy, trust_policy_free)
#define _cleanup_trust_policy_ _cleanup_ (trust_policy_freep)

/* From here on nothing is refused and no configuration is read: what runs is bound otherwise. */
void trust_policy_waive (struct trust_policy *p);

struct trust_subject {
    const char *full_name;
    const char *version;
    const char *sha256;
    bool comes_with_mur; /* it lies in the bundled store; a name below std/ alone says nothing */
};

/* Refuses an artifact that the policy wants signed and that is not, or not by one of the keys it
 * names: E-TRU-001 (no signature), E-TRU-002 (of other keys), E-TRU-003 (altered, or of another
 * package), E-TRU-004 (the policy, or a key it names, cannot be used). <signature> is the envelope,
 * NULL: none. From any thread. */
bool trust_policy_check (struct trust_policy *p, const struct trust_subject *of,
                         const char *signature, struct mur_error **err);
/* One of those codes. */
bool trust_is_refusal (enum diag_code code);
/* "ed25519:<64 hex>", the trusted key that signed it, whatever the policy asks for. Owned; NULL:
 * none. From any thread. */
char *
trust_policy_signer (struct trust_policy *p, const struct trust_subject *of, const char *signature);
