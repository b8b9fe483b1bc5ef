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

/* The body of a call. <params> NULL: none. Owned. */
char *door_call_text (const char *method, const json_t *params);
/* Calls and returns the result (owned). NULL with E-IO-003: the door did not answer, refused (401
 * and 403 are named with MURMUR_DOOR_TOKEN), or answered an error, whose code is left in *rpc_code
 * (else 0). */
json_t *door_call (struct http_client *client, const struct door_call *call, int *rpc_code,
                   struct mur_error **err);
