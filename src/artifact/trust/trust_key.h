/* SPDX-License-Identifier: Apache-2.0
 *
 * Ed25519 keys as files: one's own pair below ~/.murmur/keys, the public ones of others that are
 * trusted below ~/.murmur/trust. PEM, as openssl writes it.
 *
 * Always true: a private key is 0600 and its owner's, or it is not used; no file is replaced.
 */
#pragma once

#include "base/buf.h"
#include "base/keys/ed25519.h"

#define TRUST_KEY_ID_LEN 64

struct trust_key {
    char *name; /* the file's, without its ending */
    unsigned char public_key[ED25519_KEY_LEN];
    char id[TRUST_KEY_ID_LEN + 1]; /* hex of the SHA-256 of the public key */
};
void trust_key_clear (struct trust_key *k);
#define _cleanup_trust_key_ _cleanup_ (trust_key_clear)

/* A new pair called <name>; *path (owned) is its public half. A private one without that, as a kill
 * between the two leaves it, is kept and gets it. E-TRU-005. */
bool trust_key_generate (const char *name, char **path, struct mur_error **err);
/* One's own pair. The caller wipes the private key. E-TRU-005. */
bool trust_key_read_own (const char *name, struct trust_key *out,
                         unsigned char private_key[ED25519_KEY_LEN], struct mur_error **err);
/* The public half of it alone. E-TRU-005. */
bool trust_key_read_shown (const char *name, struct trust_key *out, struct mur_error **err);
/* A trusted public key by its name. E-TRU-004. */
bool trust_key_read_trusted (const char *name, struct trust_key *out, struct mur_error **err);
/* Trusts the public key of a file under a name. E-TRU-005. */
bool
trust_key_add (const char *name, const char *file, struct trust_key *out, struct mur_error **err);
/* E-TRU-005 when there is none. */
bool trust_key_remove (const char *name, struct mur_error **err);
/* The names of all that are trusted, or (<is_own>) of one's own, ascending. */
bool trust_key_names (bool is_own, struct strv *out, struct mur_error **err);
