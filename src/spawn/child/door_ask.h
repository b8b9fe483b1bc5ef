/* SPDX-License-Identifier: Apache-2.0
 *
 * One question to another capsule's door: a JSON-RPC request over HTTP and its answer, and what is
 * read of tasks in it.
 *
 * Always true: no message holds a token.
 */
#pragma once

#include "base/cancel.h"
#include "base/json.h"
#include "net/http_client.h"

struct door_question {
    struct http_client *http;
    const char *url;   /* "http://host:port" */
    const char *token; /* NULL: an open door */
    const char *id;    /* of the request */
    const char *method;
    json_t *params;
    const char *traceparent; /* NULL: none */
    /* "trusted", "untrusted": asked as a peer; NULL: no origin is claimed */
    const char *peer_trust;
    uint64_t timeout_ms;
    struct cancel *cancel; /* may be NULL */
};

/* One attempt: the answer's object, owned; NULL when there was none of JSON with status 2xx:
 * E-IO-003 (transport), E-RUN-007 (the door at <url> answered something else). */
json_t *door_ask (const struct door_question *q, struct mur_error **err);

/* SendMessage's params: one user message msg_<call_id> of one text part, answered at once. Owned.
 */
json_t *door_message_params (const char *call_id, const char *text);
/* The texts of an artifact's or a message's parts, joined. Owned. */
char *door_parts_text (const json_t *holder);
/* The text of a task's artifact `response`. Owned; NULL when it has none. */
char *door_response_text (const json_t *task);
