/* SPDX-License-Identifier: Apache-2.0
 *
 * What a session's handle holds.
 */
#pragma once

#include "base/json.h"
#include "base/secret.h"
#include "lib/event_queue.h"
#include "lib/worker.h"
#include "murmur/session.h"
#include "net/http_client.h"
#include "net/sse.h"

#include <pthread.h>

/* What its line of readiness says. Written once, before anybody else has the handle. */
struct session_ready {
    char *id, *address, *workdir, *records;
    struct secret *token; /* NULL: an open door */
};

/* The stream of its events. */
struct session_watch {
    struct http_transfer *transfer; /* NULL: it has no door */
    struct sse_parser parser;       /* of the network's thread */
    bool is_paused, is_over;        /* under the session's lock */
};

struct mur_session {
    struct worker worker; /* of the session's thread, but for pid and lifeline */
    mur_credential_fn *credentials;
    void *credentials_ctx;
    struct event_queue *events;
    struct http_client *client;
    struct session_ready ready;
    struct session_watch watch;

    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock;
    pthread_cond_t news; /* the counter below moved */
    uint64_t changes;
    bool is_ready, has_ended;
    int status;     /* of the process */
    json_t *result; /* its last line; NULL: it said none */
    char *ending;
};
