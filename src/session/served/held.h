/* SPDX-License-Identifier: Apache-2.0
 *
 * A call of a tool whose client can be asked. An older client is asked while the call runs; a
 * modern one is answered with what is asked, and finds its call where it was when it calls again.
 *
 * A call may go on as a task (exports.mcp.tasks): its client gets a handle and asks after it.
 *
 * Always true: an answer reaches the call it was asked for, of the same caller with the same
 * arguments, or none; a call nobody comes back to ends when its question is too old, and with the
 * session; a task is kept for as long as its client was told.
 */
#pragma once

#include "base/condition.h"
#include "mcp/server.h"
#include "session/state/outcome.h"

struct served;
struct held_call;

/* The calls that run on threads of their own. */
struct held_calls {
    pthread_mutex_t lock; /* a leaf: may be taken under a transport's */
    pthread_cond_t changed;
    struct held_call *open;
    unsigned running, asking;
    bool is_closing;
};
void held_init (struct held_calls *h);
void held_destroy (struct held_calls *h);

/* Runs a call, or goes on with the one its requestState names. False: *answer is what the client
 * gets, and there is no outcome. */
bool held_run (struct served *v, const struct mcp_call *call, struct call_outcome *o,
               struct mcp_answer *answer);
/* Every call ends and none is held any more. */
void held_close (struct served *v);
/* Until none of them runs. */
void held_drain (struct served *v);
