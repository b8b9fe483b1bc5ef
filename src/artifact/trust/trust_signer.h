/* SPDX-License-Identifier: Apache-2.0
 *
 * Who signed a package, asked of all keys that are trusted here: what lists, reports and the lock
 * say. It refuses nothing.
 */
#pragma once

#include "artifact/trust/signature.h"

#define TRUST_SIGNER_PREFIX "ed25519:" /* before the 64 hex digits of a key, in murmur.lock */

/* The keys that are trusted and can be read. */
struct trust_ring {
    struct trust_key *keys;
    size_t count;
};

/* Reads them. E-IO-003 (libcrypto is absent), or what reading the folder failed with. */
bool trust_ring_read (struct trust_ring *out, struct mur_error **err);
void trust_ring_clear (struct trust_ring *r);
#define _cleanup_trust_ring_ _cleanup_ (trust_ring_clear)

/* The key that signed a package; NULL: none of these, or the signature does not hold. Borrowed. */
const struct trust_key *trust_ring_signer (const struct trust_ring *r,
                                           const struct signed_package *p, const char *signature);
/* "ana", "an unknown key", "broken", for a table. Owned. */
char *
trust_ring_text (const struct trust_ring *r, const struct signed_package *p, const char *signature);
