/* SPDX-License-Identifier: Apache-2.0
 *
 * One HTTP exchange with a server far away: a message that is posted and what comes back of it, or
 * a stream that is only listened to.
 *
 * Always true: everything but the transfer is guarded by the server's lock; the transfer and the
 * end of an exchange are its pump's alone, which holds no lock while it starts or releases one;
 * what comes back is bounded, and only a body of the promised kind is read as messages.
 */
#pragma once

#include "mcp/post.h"
#include "net/http_client.h"
#include "net/sse.h"
#include "session/servers/server_internal.h"

enum exchange_kind {
    EXCHANGE_CALL,   /* somebody waits for its answer */
    EXCHANGE_NOTICE, /* nobody does */
    EXCHANGE_LISTEN, /* nobody does, and it stays */
};

enum exchange_state {
    EXCHANGE_DUE, /* to be started at due_ms */
    EXCHANGE_OUT,
    EXCHANGE_DROPPED, /* nobody wants it any more */
};

/* What came back. */
struct exchange_answer {
    int status; /* 0: no head yet */
    enum mcp_body kind;
    char *type, *location, *challenge, *session_id, *retry_after; /* headers; NULL: not there */
    struct buf body;
    struct sse_parser events;
    bool is_over, is_too_large;
    uint64_t answered_ms; /* when its message was there; 0: it is not */
    enum http_failure failure;
    char *detail;
};

struct exchange {
    struct exchange *next;
    struct mcp_server *server;
    enum exchange_kind kind;
    enum exchange_state state;
    int64_t id;          /* of what waits for it; 0: nothing does */
    char *text;          /* what is posted; NULL: GET */
    struct strv headers; /* name, value, name, value ... */
    bool opens;          /* its answer may bring a session's id */
    bool has_session;    /* it is sent with one */
    bool may_repeat;     /* asked twice it does no harm */
    uint64_t due_ms;
    unsigned tries, resumed;
    char *last_event; /* a stream is gone on with after this one; NULL: from its beginning */
    struct http_transfer *transfer;
    struct secret *key; /* shown to it; NULL: none was */
    struct exchange_answer answer;
};

/* Puts it into the server's list, due at once. Under the lock; <text> is taken over. */
struct exchange *exchange_new (struct mcp_server *s, enum exchange_kind kind, char *text);
/* What is shown to the server now: the whole header's value and the key in it, both owned and NULL
 * where nothing is. <refused>: what it did not accept. Not under the lock. */
bool server_credential (struct mcp_server *s, const struct secret *refused, struct secret **header,
                        struct secret **key, struct mur_error **err);
/* Starts it with the server's credential. Not under the lock. False with *err. */
bool exchange_start (struct exchange *x, struct mur_error **err);
/* Forgets what came back, so that it can be started again. Not under the lock. */
void exchange_reset (struct exchange *x);
void exchange_free (struct exchange *x);
