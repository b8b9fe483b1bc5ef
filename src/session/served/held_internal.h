/* SPDX-License-Identifier: Apache-2.0
 *
 * A held call as the files that hold it share it.
 */
#pragma once

#include "base/ids.h"
#include "session/served/held.h"
#include "session/served/served_internal.h"

/* A call that goes on as a task of its client. */
struct held_task {
    const struct exported_task *as; /* NULL: it never does */
    bool is_one, is_cancelled;
    uint64_t changed_ms; /* on the wall clock */
    char *said;          /* how far it is, in its tool's words; NULL: it said nothing */
    json_t *end;         /* {result} or {error}, once it is over; owned */
};

struct held_call {
    struct held_call *next;
    struct served *served;
    struct id id;
    char *name, *traceparent, *principal;
    json_t *arguments, *message_id,
        *capabilities; /* the last: of its client, as it declared them */
    const struct mcp_revision *revision;
    const char *log_level;
    struct cancel *cancel;

    /* under the lock */
    const struct mcp_call *waiter; /* the request that waits for it now; NULL: none does */
    json_t *asked;                 /* what is not answered yet; NULL: nothing is asked */
    json_t *given;                 /* what came */
    json_t *ahead;                 /* what came with the call, before it was asked */
    struct held_task task;
    struct call_outcome outcome;
    bool is_over, is_telling; /* the latter: the waiter's own thread must stay */
};

/* --- held_tasks.c --- */

/* What came of a task whose call is over, for its client: {result} or {error}, a new object.
 * Without the lock. */
json_t *held_task_end (const struct held_call *h);

/* Under the lock: the call goes on as a task; true, and *handle is what its client gets of it.
 * False: there are too many. */
bool held_task_begin (struct held_call *h, json_t **handle);

/* --- held_call.c: under the lock --- */

/* Of none that is in the list. */
void held_free (struct held_call *h);
/* Lets it go, once it runs no more. */
void held_forget (struct held_call *h);
/* Moves what of <responses> answers something from what is asked to what came. */
void held_take (struct held_call *h, const json_t *responses);
/* Something of it is another now. */
void held_task_touch (struct held_call *h);
