/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of things in an OCI registry: host, repository, tag and digest.
 *
 * Pure text. Always true: every part of a parsed reference may stand in a request's path as it is.
 */
#pragma once

#include "base/digest.h"
#include "base/error.h"

#define OCI_SCHEME "oci://"

/* "sha256:" and 64 hex digits. */
#define OCI_DIGEST_LEN (7 + SHA256_HEX_LEN)

struct oci_ref {
    char *host;       /* "ghcr.io", "127.0.0.1:5000"; lower case */
    char *repository; /* "ana/tool-git" */
    char *tag;        /* NULL: none was given */
    char *digest;     /* "sha256:…"; NULL: none was given. It wins over the tag */
};

/* Reads "[oci://]host[:port]/repository[:tag][@sha256:…]". The host must look like one (a dot, a
 * port, or localhost). E-REG-007. */
bool oci_ref_parse (const char *text, struct oci_ref *out, struct mur_error **err);
void oci_ref_clear (struct oci_ref *r);
#define _cleanup_oci_ref_ _cleanup_ (oci_ref_clear)
/* "host/repository[:tag][@digest]", as messages show it. Owned. */
char *oci_ref_text (const struct oci_ref *r);
/* True for a tag: 1..128 of letters, digits and "_.-", not beginning with '.' or '-'. */
bool oci_tag_is_valid (const char *text);
/* True for "sha256:" and 64 lower-case hex digits, the only kind that is read. */
bool oci_digest_is_valid (const char *text);
/* The digest of bytes. */
void oci_digest_of (const void *data, size_t len, char out[OCI_DIGEST_LEN + 1]);
