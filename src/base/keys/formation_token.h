/* SPDX-License-Identifier: Apache-2.0
 *
 * Formation tokens: mft1.<base64url payload>.<base64url Ed25519 signature>, by which a member's
 * door knows another member of its formation (spec/spawn.md C1, spec/door.md 10.4).
 *
 * ed25519_load comes first. The launcher signs, nobody else can. Order of judging: shape,
 * signature, payload, formation, audience.
 */
#pragma once

#include "base/keys/ed25519.h"

#define FORMATION_TOKEN_TAG "mft1."
/* Who runs the machines a session of a fleet is on; no member of a formation has such a name. */
#define FLEET_OPERATOR "@operator"

/* The caller wipes and frees it; NULL when the library refuses. */
char *formation_token_mint (const unsigned char private_key[ED25519_KEY_LEN],
                            const char *formation_id, const char *from, const char *to);

enum formation_verdict {
    FORMATION_INVALID,  /* not genuine, or of another formation */
    FORMATION_NOT_HERE, /* genuine, for another member */
    FORMATION_GENUINE,
};

/* *from (owned) is set unless it is invalid. */
enum formation_verdict
formation_token_verify (const unsigned char public_key[ED25519_KEY_LEN], const char *formation_id,
                        const char *to, const char *token, char **from);
