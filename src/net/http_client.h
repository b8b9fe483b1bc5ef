/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP out: one libcurl multi handle on one thread, both started by the first request; connections
 * are pooled for the client's life, so fifty turns use one connection.
 *
 * Always true: redirects are not followed (http_fetch may when asked), no cookies, no netrc, no
 * decompression; every socket is close-on-exec from birth; a name resolving to a link-local or
 * metadata address is refused and the connection goes to the address that was checked. A request
 * whose body may have reached a server is never sent a second time by itself.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "net/http_failure.h"

#include <stdint.h>

struct http_header {
    const char *name; /* lower case where we deliver it; any case where we take it */
    const char *value;
    size_t value_len;
};

enum http_body {
    HTTP_BODY_NONE,
    HTTP_BODY_BUFFER, /* body, body_len: copied */
    HTTP_BODY_STREAM, /* pushed with http_transfer_send; body_len its length, or HTTP_UNKNOWN_LENGTH
                       */
};

#define HTTP_UNKNOWN_LENGTH SIZE_MAX

struct http_request {
    const char *method;      /* "GET", ... */
    const char *url;         /* absolute, http or https */
    const char *socket_path; /* a unix socket to connect to instead of its host; NULL: none */
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
    bool is_public_only;               /* refused at an address that is not of the public net */
    bool uses_proxy_env; /* http_proxy, https_proxy, all_proxy, no_proxy of our environment;
                            loopback hosts never */
};

struct http_client;
struct http_transfer;

/* Makes a client. Loads nothing and starts nothing yet. */
struct http_client *http_client_new (void);
/* Whom this client believes and how it names itself over https, PEM texts, each NULL for none: <ca>
 * in place of the system's authorities, a certificate and its key. Copied; before the first
 * request.
 */
void http_client_trust (struct http_client *c, const char *ca, const char *cert, const char *key);
/* Ends every transfer still running (end callback HTTP_INTERNAL) and the thread. Released transfers
 * may follow. */
void http_client_free (struct http_client *c);
DEFINE_CLEANUP (struct http_client, http_client_free)
/* Loads libcurl: done before there are threads, no fork of theirs meets it half loaded. */
void http_client_load (void);
/* Starts the thread and loads libcurl there, so that the first request does not wait for it.
 * Returns at once. */
void http_client_warm (struct http_client *c);

/* Called on the client's thread, in this order: head once, body any number of times, end once. They
 * must not block. */
struct http_events {
    /* May be NULL. */
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
