/* SPDX-License-Identifier: Apache-2.0
 *
 * X.509 certificates as Sigstore issues them, read and used for one signature. By the shared
 * libcrypto, opened on first use.
 *
 * Nothing here says whether a certificate is to be believed: no chain and no time is looked at.
 */
#pragma once

#include "base/error.h"

#include <stddef.h>

enum certificate_outcome {
    CERTIFICATE_HOLDS,      /* its key made the signature */
    CERTIFICATE_FAILS,      /* its key did not */
    CERTIFICATE_UNREADABLE, /* no certificate, or libcrypto is absent */
};

struct certificate_facts {
    char *identity; /* the first name it is for: an address or a URI; NULL: none */
    char *issuer;   /* who vouched for that name, as Sigstore writes it; NULL: not said */
};
void certificate_facts_clear (struct certificate_facts *f);
#define _cleanup_certificate_facts_ _cleanup_ (certificate_facts_clear)

struct certificate_use {
    const unsigned char *der;
    size_t der_len;
    const void *data; /* what was signed, with SHA-256 */
    size_t len;
    const unsigned char *signature;
    size_t signature_len;
};

/* Checks a signature by a certificate's key; *facts are filled unless it is unreadable. */
enum certificate_outcome
certificate_check (const struct certificate_use *use, struct certificate_facts *facts);
