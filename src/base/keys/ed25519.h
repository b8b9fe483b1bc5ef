/* SPDX-License-Identifier: Apache-2.0
 *
 * Ed25519 signatures, by the shared libcrypto: opened on first use, because linked in it would
 * bring every other algorithm along. Formations and signed packages need it.
 */
#pragma once

#include "base/error.h"

#include <stddef.h>

#define ED25519_KEY_LEN       32
#define ED25519_SIGNATURE_LEN 64

/* False with E-IO-003 when libcrypto cannot be loaded. After it returned true the functions below
 * work. */
bool ed25519_load (struct mur_error **err);

/* A new key pair. False when the library refuses. */
bool ed25519_new_pair (unsigned char private_key[ED25519_KEY_LEN],
                       unsigned char public_key[ED25519_KEY_LEN]);
/* The public key of a private one. False when the library refuses. */
bool ed25519_public_of (const unsigned char private_key[ED25519_KEY_LEN],
                        unsigned char public_key[ED25519_KEY_LEN]);
bool ed25519_sign (const unsigned char private_key[ED25519_KEY_LEN], const void *data, size_t len,
                   unsigned char signature[ED25519_SIGNATURE_LEN]);
bool ed25519_verify (const unsigned char public_key[ED25519_KEY_LEN], const void *data, size_t len,
                     const unsigned char signature[ED25519_SIGNATURE_LEN]);
