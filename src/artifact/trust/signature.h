/* SPDX-License-Identifier: Apache-2.0
 *
 * A signature of a package: a DSSE envelope around an in-toto statement that says which bytes have
 * which name and version.
 *
 * Always true: the same package and key give the same text; nothing of a statement is believed
 * before a key that was asked for has signed it.
 */
#pragma once

#include "artifact/trust/trust_key.h"

struct signed_package {
    const char *name; /* bare, as packed */
    const char *version;
    const char *sha256;
};

/* The envelope, with those of <older> (may be NULL) over the same statement. Owned; NULL when the
 * library refuses. */
char *signature_make (const struct signed_package *p, const struct trust_key *key,
                      const unsigned char private_key[ED25519_KEY_LEN], const char *older);

/* One envelope with the signatures of both; <other> as it is when they are over two statements.
 * Owned. */
char *signature_join (const char *one, const char *other);

/* What an envelope says that is not so of a package, whoever signed it; NULL: nothing. Owned. */
char *signature_fault (const char *text, const struct signed_package *p);
/* Adds what a DSSE signature is over: the pre-authentication encoding. */
void signature_encode (const char *type, const char *payload, size_t len, struct buf *out);

enum signature_verdict {
    SIGNATURE_GOOD,
    SIGNATURE_FOREIGN, /* none of these keys signed it */
    SIGNATURE_BROKEN,  /* malformed, altered, or of another package */
};

/* Judges an envelope by the keys that may have signed. *which (may be NULL) is the index of the one
 * that has. *why (owned, may be NULL) is set unless it is good. ed25519_load comes first. */
enum signature_verdict
signature_judge (const char *text, const struct signed_package *p, const struct trust_key *keys,
                 size_t count, size_t *which, char **why);
