/* SPDX-License-Identifier: Apache-2.0
 *
 * One HTTP call that waits for its answer.
 */
#pragma once

#include "base/cancel.h"
#include "net/http_client.h"

struct http_response {
    int status;
    struct http_header *headers; /* names in lower case; owned */
    size_t header_count;
    struct buf body;
    bool is_elsewhere; /* a redirect led to another origin than was asked */
};

/* The first value of a header, or NULL. <name> in lower case. Borrowed. */
const char *http_response_header (const struct http_response *r, const char *name);
/* All values of a header, joined with commas. Owned; NULL: it is not there. */
char *http_response_joined (const struct http_response *r, const char *name);
void http_response_free (struct http_response *r);
#define _cleanup_http_response_ _cleanup_ (http_response_free)

struct http_fetch {
    struct http_request request; /* body kind NONE or BUFFER */
    size_t limit_bytes;          /* of the response body; more is an error */
    unsigned redirect_limit;     /* GET only; authorization is dropped when the host changes */
    uint64_t total_timeout_ms;   /* 0 = none */
    struct cancel *cancel;       /* may be NULL */
    /* When set, body bytes of a 2xx answer go here instead of response.body; false ends the fetch.
     */
    bool (*sink) (void *ctx, const void *data, size_t len);
    void *sink_ctx;
};

/* Performs it and waits. Any status is a success here. Fails with E-IO-003 naming the host and the
 * reason; *failure (may be NULL) tells its class. */
bool http_fetch (struct http_client *c, const struct http_fetch *fetch, struct http_response *out,
                 enum http_failure *failure, struct mur_error **err);
