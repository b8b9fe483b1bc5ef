/* SPDX-License-Identifier: Apache-2.0
 *
 * AWS Signature Version 4: what a request to an S3-compatible server says of who asks, without the
 * key going along.
 *
 * Always true: pure. What is derived from the key is wiped before it is let go.
 */
#pragma once

#include "base/secret.h"

#include <stddef.h>
#include <stdint.h>

#define SIGV4_DATE_LEN 16

struct sigv4_header {
    const char *name, *value; /* lower case; without blanks around it */
};

struct sigv4_request {
    const char *method;
    const char *path, *query; /* as they are sent, escaped; the query sorted, "" without one */
    const struct sigv4_header *headers; /* all that are signed, sorted by name */
    size_t header_count;
    const char *payload_sha256; /* 64 hex digits */
    const char *region, *service;
    uint64_t unix_ms;
};

/* "20130524T000000Z", which x-amz-date has. */
void sigv4_date (uint64_t unix_ms, char out[SIGV4_DATE_LEN + 1]);
/* The value of the header authorization; owned. */
char *
sigv4_authorization (const struct sigv4_request *r, const char *key_id, const struct secret *key);
