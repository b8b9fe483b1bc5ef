/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP out: one libcurl multi handle on one thread, both started by the first request; connections
 * are pooled for the client's life, so fifty turns use one connection.
 *
 * Callers: net/guest_http.c (guests), net/gateway.c, artifact/ sources, spawn/ completion, cli/
 * (doors of running sessions). Always true: redirects are not followed (http_fetch may when asked),
 * no cookies, no netrc, no decompression; every socket is close-on-exec from birth; a name
 * resolving to a link-local or metadata address is refused and the connection goes to the address
 * that was checked. A request whose body may have reached a server is never sent a second time by
 * itself.
 */
#pragma once

#include "base/buf.h"
#include "base/cancel.h"
#include "base/error.h"

#include <stdint.h>

struct http_header {
    const char *name; /* lower case where we deliver it; any case where we take it */
    const char *value;
    size_t value_len;
};

enum http_failure {
    HTTP_OK,
    HTTP_DENIED, /* the name resolved to an address it may not reach */
    HTTP_DNS_FAILED,
    HTTP_REFUSED,
    HTTP_RESET, /* closed or reset before the head was complete */
    HTTP_CONNECT_TIMEOUT,
    HTTP_TLS_FAILED,
    HTTP_INCOMPLETE,       /* the body ended early */
    HTTP_RESPONSE_TIMEOUT, /* first byte or between bytes */
    HTTP_INTERNAL,         /* everything else, libcurl missing included */
};

/* "connection refused" and so on: for error texts. Static storage. */
const char *http_failure_text (enum http_failure failure);
/* Reset, timed out or incomplete: the failures worth another try (spec/session.md 5.7). */
bool http_failure_is_transient (enum http_failure failure);

enum http_body {
    HTTP_BODY_NONE,
    HTTP_BODY_BUFFER, /* body, body_len: copied */
    HTTP_BODY_STREAM, /* pushed with http_transfer_send; body_len its length, or HTTP_UNKNOWN_LENGTH
                       */
};

#define HTTP_UNKNOWN_LENGTH SIZE_MAX

struct http_request {
    const char *method; /* "GET", ... */
    const char *url;    /* absolute, http or https */
    /* Sent as given, one line each; host, content-length and hop-by-hop names are dropped: the
     * client writes its own. */
    const struct http_header *headers;
    size_t header_count;
    enum http_body body_kind;
    const void *body;
    size_t body_len;
    uint64_t connect_timeout_ms;       /* 0 = 30 s */
    uint64_t first_byte_timeout_ms;    /* after the request was handed to a connection; 0 = none */
    uint64_t between_bytes_timeout_ms; /* while not paused; 0 = none */
    bool uses_proxy_env; /* http_proxy, https_proxy, all_proxy, no_proxy of our environment;
                            loopback hosts never */
};

struct http_client;
struct http_transfer;

/* Makes a client. Loads nothing and starts nothing yet. */
struct http_client *http_client_new (void);
/* Ends every transfer still running (end callback HTTP_INTERNAL) and the thread. Released transfers
 * may follow. */
void http_client_free (struct http_client *c);
DEFINE_CLEANUP (struct http_client, http_client_free)
/* Starts the thread and loads libcurl there, so that the first request does not wait for it.
 * Returns at once. */
void http_client_warm (struct http_client *c);

/* Called on the client's thread, in this order: head once, body any number of times, end once. They
 * must not block. */
struct http_events {
    void (*head) (void *ctx, int status, const struct http_header *headers, size_t header_count);
    /* False = nothing taken: the transfer pauses until http_transfer_resume and offers the same
     * bytes again. */
    bool (*body) (void *ctx, const void *data, size_t len);
    /* HTTP_BODY_STREAM: there is room again after http_transfer_send returned false. May be NULL.
     */
    void (*ready) (void *ctx);
    /* detail: one line for people, never holding a header value. */
    void (*end) (void *ctx, enum http_failure failure, const char *detail);
};

/* Starts a transfer; never blocks, never fails: what goes wrong arrives through `end`. Everything
 * in <request> is copied. */
struct http_transfer *http_start (struct http_client *c, const struct http_request *request,
                                  const struct http_events *events, void *ctx);
/* HTTP_BODY_STREAM: the next bytes of the request body (copied). False = too much is waiting
 * already, nothing was taken: offer it again after `ready`. */
bool http_transfer_send (struct http_transfer *t, const void *data, size_t len);
/* HTTP_BODY_STREAM: the body is complete, or (false) broken off, which ends the transfer
 * HTTP_RESET. */
void http_transfer_send_end (struct http_transfer *t, bool is_complete);
void http_transfer_resume (struct http_transfer *t);
/* Releases the transfer, abandoning it when it still runs. Exactly once for each http_start, from
 * any thread, from inside its own callbacks too. After it returns no callback runs. */
void http_transfer_release (struct http_transfer *t);

/* --- one call that waits --- */

struct http_response {
    int status;
    struct http_header *headers; /* names in lower case; owned */
    size_t header_count;
    struct buf body;
};

/* The first value of a header, or NULL. <name> in lower case. Borrowed. */
const char *http_response_header (const struct http_response *r, const char *name);
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
