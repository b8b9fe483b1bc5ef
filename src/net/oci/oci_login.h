/* SPDX-License-Identifier: Apache-2.0
 *
 * Who we are to a registry: what docker, podman and their credential helpers keep for its host.
 *
 * Always true: read where they keep it, each time it is needed; never stored, logged or shown. A
 * helper is a program `docker-credential-<name>` of the PATH, given the host on its input.
 */
#pragma once

#include "base/error.h"
#include "base/secret.h"

struct oci_login {
    char *user;             /* NULL with a token */
    struct secret *secret;  /* the password, or the token */
    bool is_identity_token; /* <secret> is changed at the token server */
};

void oci_login_clear (struct oci_login *l);
#define _cleanup_oci_login_ _cleanup_ (oci_login_clear)

/* What is kept for <host> ("ghcr.io", "127.0.0.1:5000") or, closer, for <repository> there or what
 * it lies below. True with an empty *out (no secret) when
 * nothing is; false with E-REG-012 when what is there cannot be used: a file that is no JSON, a
 * helper that is missing, fails or does not end in time. */
bool oci_login_find (const char *host, const char *repository, struct oci_login *out,
                     struct mur_error **err);
/* "Basic …" of a user and a password. Owned, to be wiped; NULL without both. */
char *oci_login_basic (const struct oci_login *l);
