/* SPDX-License-Identifier: Apache-2.0
 *
 * Talks to the doors of running sessions: who they are (spec/door.md 16.1, layer 3), and one
 * JSON-RPC call.
 */
#pragma once

#include "base/json.h"
#include "home/running.h"
#include "net/http_client.h"

/* True when the door at the record's address answers as that session: connect within 2 s, card
 * within 5 s. Never fails: what cannot be asked does not answer. */
bool door_answers (struct http_client *client, const struct running_record *record);
/* Asks many at once; answers[i] belongs to records[i]. */
void doors_answer (struct http_client *client, const struct running_record *const *records,
                   size_t count, bool *answers);

/* The token --url uses: MURMUR_DOOR_TOKEN without the blanks around it. Owned; NULL without. */
struct secret *door_token_of_environment (void);

struct door_call {
    const char *url;            /* "host:port" */
    const struct secret *token; /* NULL: none is sent */
    const char *method;
    const json_t *params;
    uint64_t timeout_ms;
};

/* Calls and returns the result (owned). NULL with E-IO-003: the door did not answer, refused (401
 * and 403 are named with MURMUR_DOOR_TOKEN), or answered an error, whose code is left in *rpc_code
 * (else 0). */
json_t *door_call (struct http_client *client, const struct door_call *call, int *rpc_code,
                   struct mur_error **err);

/* A streaming call. Times as in struct http_request: 0 is its default. */
struct door_subscription {
    const char *url;            /* "host:port" */
    const struct secret *token; /* NULL: none is sent */
    const char *method;
    const json_t *params; /* NULL: none */
    const char *last_id;  /* the event after which it goes on; NULL or "": from the beginning */
    bool is_extended;     /* the frames of a running task are wanted, too */
    uint64_t connect_timeout_ms, first_byte_timeout_ms, between_bytes_timeout_ms;
};

/* Starts it; everything arrives through <events>, on the network's thread. Released by the caller.
 */
struct http_transfer *door_subscribe (struct http_client *client, const struct door_subscription *d,
                                      const struct http_events *events, void *ctx);
