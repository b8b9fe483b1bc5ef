/* SPDX-License-Identifier: Apache-2.0
 *
 * What a command asks of the egress relay where it has no network of its own: one request of an
 * HTTP proxy, a tunnel (CONNECT) or a request for an absolute http address. Pure functions over
 * bytes.
 *
 * A connection serves one request: the head that goes on says `Connection: close`, so that the next
 * one is judged anew.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

#define PROXY_HEAD_MAX 16384

enum proxy_verdict {
    PROXY_INCOMPLETE, /* more bytes are needed */
    PROXY_MALFORMED,  /* no request of a proxy, or a head beyond PROXY_HEAD_MAX */
    PROXY_TUNNEL,
    PROXY_FORWARD,
};

struct proxy_request {
    char host[256]; /* lower case; no trailing dot */
    int port;
    size_t head_len; /* bytes of the head with its empty line; what follows is the body's */
};

enum proxy_verdict proxy_request_read (const char *bytes, size_t len, struct proxy_request *out);
/* The head as the server far away is to read it: its path alone, no line meant for a proxy. Of a
 * PROXY_FORWARD. */
void
proxy_request_rewrite (const char *bytes, const struct proxy_request *request, struct buf *head);
