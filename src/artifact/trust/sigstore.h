/* SPDX-License-Identifier: Apache-2.0
 *
 * A Sigstore bundle beside a package, read without a network: whether it is about these bytes and
 * made by the key of the certificate in it, and whom that certificate names.
 *
 * Always true: it is never asked for and allows nothing. That the certificate comes from Sigstore,
 * and that its log has the signature, is not looked at.
 */
#pragma once

#include "artifact/package/package.h"

enum sigstore_outcome {
    SIGSTORE_HOLDS,
    SIGSTORE_UNCHECKED, /* about these bytes; it names a key and has no certificate */
    SIGSTORE_BROKEN,    /* malformed, about other bytes, or not made by its certificate's key */
};

/* The text of the bundle beside an archive: <archive>.sigstore.json, or .sigstore. Owned; NULL:
 * there is none that can be read. */
char *sigstore_beside (const char *archive);
/* *said (owned) is what a person is told after "its Sigstore bundle ". */
enum sigstore_outcome
sigstore_judge (const char *bundle, const struct package *package, char **said);
