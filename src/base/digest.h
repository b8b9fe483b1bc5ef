/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA-256, HMAC-SHA-256, base64 of both alphabets, constant-time compare, random bytes. Backed by
 * libcrypto.
 */
#pragma once

#include "base/buf.h"

#include <stdint.h>

#define SHA256_HEX_LEN 64

/* 64 lower-case hex digits and a NUL. */
void sha256_hex (const void *data, size_t len, char out[SHA256_HEX_LEN + 1]);
/* The same of at most <limit> bytes: a file that grows meanwhile has no end. */
bool sha256_hex_fd_upto (int fd, uint64_t limit, char out[SHA256_HEX_LEN + 1]);
/* A digest fed piece by piece; the last call frees it. */
struct sha256;
struct sha256 *sha256_new (void);
void sha256_add (struct sha256 *d, const void *data, size_t len);
void sha256_finish (struct sha256 *d, char out[SHA256_HEX_LEN + 1]);
void
hmac_sha256 (const void *key, size_t key_len, const void *data, size_t len, unsigned char out[32]);
/* True for exactly 64 lower-case hex digits. */
bool sha256_hex_is_valid (const char *text);
void hex_encode (const void *data, size_t len, char *out); /* out: 2 * len + 1 */
/* Unpadded base64url. */
char *base64url_encode (const void *data, size_t len);
/* Decodes unpadded base64url strictly (no padding, no stray bits). Returns NULL when malformed. */
unsigned char *base64url_decode (const char *text, size_t len, size_t *out_len);
/* Padded, of the standard alphabet. Owned. */
char *base64_encode (const void *data, size_t len);
/* Padded or not. Owned bytes with a NUL after them; NULL when malformed. */
unsigned char *base64_decode (const char *text, size_t len, size_t *out_len);
bool bytes_equal_ct (const void *a, const void *b, size_t len);
void random_bytes (void *out, size_t len);
