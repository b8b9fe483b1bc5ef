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
    struct strv names; /* whose the tokens are, the operator's among them; none: an open door */
    struct secret **tokens;
};

/* The stream of its events. */
struct session_watch {
    struct http_transfer *transfer; /* NULL: it has no door */
    struct sse_parser parser;       /* of the network's thread */
    bool is_paused, is_over;        /* under the session's lock */
};

/* Who is told of its events. */
struct session_calls {
    mur_event_fn *fn; /* NULL: they are taken from the queue */
    void *ctx;
    pthread_t thread;
    bool has_thread;
    void (*release) (struct mur_session *s); /* of that thread: set once a callback freed it */
};

/* How it ended, under the lock; written once. */
struct session_end {
    bool has_ended;
    int status;     /* of the process; -1: it could not be learnt */
    json_t *result; /* its last line; NULL: it said none */
    char *ending;
    struct mur_error *error; /* NULL: it said none */
};

struct mur_session {
    pid_t owner;          /* who launched it: a copy of that process has no session */
    struct worker worker; /* of the session's thread, but for pid and lifeline */
    mur_credential_fn *credentials;
    void *credentials_ctx;
    struct event_queue *events;
    struct http_client *client;
    struct session_ready ready;
    struct session_watch watch;
    struct session_calls calls;

    pthread_t thread;
    bool has_thread;
    bool is_let_go; /* of that thread: a callback for keys freed it */
    pthread_mutex_t lock;
    pthread_cond_t news; /* the counter below moved */
    uint64_t changes;
    bool is_ready;
    char *answer; /* its last; NULL: none yet */
    struct session_end end;
};

/* Under the lock: something of it is another now. */
void session_tell (struct mur_session *s);
/* There is one, this process launched it, and is no fork of that. */
bool session_is_ours (const struct mur_session *s);
/* The token of this name; NULL: there is none. Borrowed. */
const struct secret *session_token (const struct mur_session *s, const char *name);
