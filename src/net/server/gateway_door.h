/* SPDX-License-Identifier: Apache-2.0
 *
 * The credential gateway as an address: a program that speaks HTTP by itself reaches its provider
 * at a loopback port, and the key is put in on the way. Requests and answers stream both ways as
 * they are; of what passes only the provider's token counts are read.
 *
 * Always true: a request without the door's placeholder as its key is refused, so that no other
 * process of the host can use the key by finding the port; the placeholder and the caller's own
 * authorization never leave; a refusal has the form of the provider's own errors. Handlers run on
 * the server's thread; nothing of it blocks.
 */
#pragma once

#include "net/gateway.h"

struct gateway_door;

/* What the provider reported to have used, over all answers so far. */
struct gateway_usage {
    uint64_t input, output, cache_read, cache_creation;
    uint64_t answers;   /* that told some of it */
    uint64_t estimates; /* of them, streams that told nothing and were judged by their size */
};

#define GATEWAY_DOOR_REFUSALS 6

struct gateway_door_spec {
    struct gateway *gateway;  /* borrowed */
    struct http_client *http; /* borrowed */
    /* NULL: the request may go; else one sentence why not (owned): the answer is 402 in the
     * provider's form. Any thread; may be NULL. */
    char *(*refuse) (void *ctx);
    /* The provider has answered 401 GATEWAY_DOOR_REFUSALS times, and nothing else in between: the
     * key is wrong, and asking on is for nothing. Again after as many more. Any thread; may be
     * NULL. */
    void (*key_refused) (void *ctx);
    void *ctx;
};

/* Listens on 127.0.0.1 and serves. E-IO-003, E-RUN-010. */
struct gateway_door *
gateway_door_new (const struct gateway_door_spec *spec, struct mur_error **err);
unsigned gateway_door_port (const struct gateway_door *d);
/* "http://127.0.0.1:<port><endpoint's path>". Borrowed. */
const char *gateway_door_url (const struct gateway_door *d);
/* What stands where the program wants a key. Borrowed. */
const char *gateway_door_placeholder (const struct gateway_door *d);
struct gateway_usage gateway_door_usage (struct gateway_door *d);
/* Ends what is under way. */
void gateway_door_free (struct gateway_door *d);
DEFINE_CLEANUP (struct gateway_door, gateway_door_free)
