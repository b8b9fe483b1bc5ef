/* SPDX-License-Identifier: Apache-2.0
 *
 * Outbound HTTP of one guest: who may send what where (spec/containment.md 3.2), and what the
 * session learns from it.
 *
 * Always true: nothing is sent before it was admitted; what is not admitted is HTTP-request-denied
 * and no packet leaves.
 */
#pragma once

#include "engine/engine.h"
#include "net/allow.h"
#include "net/gateway.h"
#include "net/http_client.h"

/* A member of the session's formation as a guest may call it. */
struct guest_peer {
    char *base;           /* "http://host:port"; owned by whoever asked */
    char *asked_for;      /* what the list of allowed hosts is asked about it; owned too */
    struct secret *token; /* owned too */
    const char *trust;    /* of the running task: "trusted", "untrusted" */
};

/* Who looks on: what a guest sent and was given, as it was, before a key is put in. `began` comes
 * on the guest's thread and returns what the others are called with, from any thread but never two
 * at once for one direction; `ended` comes last, once, when nothing of the exchange happens any
 * more.
 */
struct guest_http_watch {
    void *(*began) (void *ctx, const struct guest_http_request *request, bool is_refused);
    void (*sent) (void *mark, const void *data, size_t len);
    void (*head) (void *mark, int status, const struct http_header *headers, size_t count);
    void (*body) (void *mark, const void *data, size_t len);
    void (*failed) (void *mark, enum guest_http_error error);
    void (*ended) (void *mark);
};

struct guest_http_spec {
    struct http_client *client;     /* borrowed */
    const struct allow_list *allow; /* borrowed; NULL = nothing allowed */
    struct gateway *gateway;        /* borrowed; NULL = none in this store */
    /* Asked on the guest's thread for each request through a metered gateway; NULL = never
     * admitted. */
    bool (*is_admitted) (void *ctx);
    void *ctx;
    /* Where a request to <name>.formation.invalid goes (containment.md 3.2 step 2). NULL = nowhere.
     * On the guest's thread; may wait for an address. */
    bool (*find_peer) (void *peer_ctx, const char *name, struct guest_peer *out);
    void *peer_ctx;
    const struct guest_http_watch *watch; /* NULL: nobody looks on */
    void *watch_ctx;
};

/* What the last finished request through the gateway showed: the ground for inference lines and
 * retries (session.md 5.7). */
struct guest_http_observation {
    unsigned requests;         /* through the gateway, finished or failed */
    int status;                /* of the last answer; 0 when none came */
    enum http_failure failure; /* of the last one; HTTP_OK when it was answered whole */
    bool is_credential_rejected;
    bool has_retry_after;
    uint64_t retry_after_ms; /* retry-after-ms, else retry-after in seconds or as an HTTP date */
};

struct guest_http;

struct guest_http *guest_http_new (const struct guest_http_spec *spec);
/* After the guest is gone. */
void guest_http_free (struct guest_http *g);
DEFINE_CLEANUP (struct guest_http, guest_http_free)
void guest_http_observe (struct guest_http *g, struct guest_http_observation *out);

extern const struct guest_http_handler guest_http_handler;
