/* SPDX-License-Identifier: Apache-2.0
 *
 * A request as a server judges it: which revision it speaks, whether what that revision requires is
 * there, and the answer it gets.
 *
 * Always true: nothing is inferred from an earlier request but that a legacy peer was opened by
 * `initialize`; who a client or server says it is decides nothing.
 */
#pragma once

#include "mcp/message.h"

/* A legacy client's connection, or the place of one. */
struct mcp_peer {
    const struct mcp_revision *revision; /* NULL: `initialize` has not come */
    json_t *capabilities;                /* owned */
    const char *log_level;               /* static; NULL: it hears nothing */
};
void mcp_peer_clear (struct mcp_peer *p);

struct mcp_request {
    struct mcp_message message; /* owned */
    const struct mcp_method *method;
    const struct mcp_revision *revision; /* never NULL once judged */
    const json_t *capabilities;          /* of the client; NULL: none declared */
    const json_t *progress_token;        /* NULL: no progress is wanted */
    const char *log_level;               /* static; NULL: no messages are wanted */
    const char *principal; /* who asks, set by the transport; NULL: nobody in particular */
};

struct mcp_answer {
    json_t *result; /* owned; NULL: an error */
    enum mcp_code code;
    char *text;   /* owned; of the error */
    json_t *data; /* owned; of the error, may be NULL */
};
void mcp_answer_clear (struct mcp_answer *a);
#define _cleanup_mcp_answer_ _cleanup_ (mcp_answer_clear)
/* Both return false. */
bool mcp_refuse (struct mcp_answer *a, enum mcp_code code, const char *fmt, ...) _printf_ (3, 4);

/* Judges r->message, which was read before and is no answer. False: *no says what is answered. A
 * notification needs no _meta. */
bool mcp_request_judge (struct mcp_request *r, const struct mcp_peer *peer, struct mcp_answer *no);
void mcp_request_clear (struct mcp_request *r);

/* True when the client declared it: "elicitation", "sampling", or an extension by its id. */
bool mcp_client_can (const struct mcp_request *r, const char *capability);
/* The answer's text, with what the request's era adds to each result. <server> is {name, version}.
 */
char *
mcp_answer_text (const struct mcp_request *r, const struct mcp_answer *a, const json_t *server);
/* A progress notification of this request; <message> may be NULL. Owned; NULL: none is wanted. */
char *
mcp_progress_text (const struct mcp_request *r, double progress, double total, const char *message);
