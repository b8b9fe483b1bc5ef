/* SPDX-License-Identifier: Apache-2.0
 *
 * A records store that speaks S3: what each request says of who asks, and what a refusal means.
 *
 * Always true: the secret key goes nowhere; a session token goes over https or to this machine
 * alone.
 */
#pragma once

#include "net/http_fetch.h"
#include "trace/ship/s3_place.h"

struct s3;

/* E-IO-003. */
struct s3 *s3_open (const char *url, struct mur_error **err);
void s3_free (struct s3 *s);
DEFINE_CLEANUP (struct s3, s3_free)
/* The address of an object; owned. */
char *s3_address (const struct s3 *s, const char *key);

#define S3_HEADERS_MOST 4

struct s3_signed {
    struct http_header headers[S3_HEADERS_MOST];
    size_t count;
    char date[20], sha256[65];
    char *authorization;
    struct secret *token; /* NULL: none */
};
/* What goes along with a request of these bytes. E-IO-003: no keys, or a token that may not go. */
bool s3_sign (const struct s3 *s, struct http_client *http, const char *method, const char *key,
              const void *data, size_t len, struct s3_signed *out, struct mur_error **err);
void s3_signed_clear (struct s3_signed *signed_headers);
#define _cleanup_s3_signed_ _cleanup_ (s3_signed_clear)

/* True: the answer says that there is no such object, and nothing worse. */
bool s3_is_nothing (const struct http_response *r);
/* Fails with E-IO-003: what the answer to <key> of the store <name> means and what helps. */
bool s3_refuse (const struct http_response *r, const char *name, const char *key,
                struct mur_error **err);
