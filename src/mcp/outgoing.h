/* SPDX-License-Identifier: Apache-2.0
 *
 * What a server asks a legacy client, and the wait for its answer.
 *
 * Always true: an id is never used twice and cannot be guessed; a wait ends with an answer, its
 * time, a cancel or the client's end; an answer nobody waits for changes nothing.
 */
#pragma once

#include "base/cancel.h"
#include "mcp/message.h"

#include <pthread.h>
#include <stdint.h>

struct mcp_asked;

struct mcp_outgoing {
    pthread_mutex_t lock; /* a leaf */
    pthread_cond_t changed;
    struct mcp_asked *open;
    uint64_t count;
    bool is_closed;
};
void mcp_outgoing_init (struct mcp_outgoing *o);
void mcp_outgoing_destroy (struct mcp_outgoing *o);

/* Sends a request with <send> (its text is taken over) and waits. The result, a new value; NULL: no
 * result came. */
json_t *mcp_outgoing_ask (struct mcp_outgoing *o, void (*send) (void *ctx, char *text), void *ctx,
                          const char *method, const json_t *params, uint64_t timeout_ms,
                          struct cancel *cancel);
/* An answer of the client. */
void mcp_outgoing_take (struct mcp_outgoing *o, const struct mcp_message *answer);
/* The client is gone: nobody waits any more, now or later. */
void mcp_outgoing_close (struct mcp_outgoing *o);
