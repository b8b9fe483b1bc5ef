/* SPDX-License-Identifier: Apache-2.0
 *
 * The person a running call may turn to: whoever is behind its task, or sits at the client whose
 * call it is.
 */
#pragma once

#include "base/json.h"
#include "door/tasks/question.h"

struct session;
struct running_task;

/* The client of MCP whose call runs. */
struct asked_client {
    /* Asks all of <requests> ({key: {method, params}}) and waits: {key: result}, a new object, or
     * NULL when they are not answered. Called without the loop lock. */
    json_t *(*ask) (void *ctx, const json_t *requests, uint64_t timeout_ms);
    void *ctx;
    unsigned takes;   /* of mcp_input: what it can be asked for */
    bool is_operator; /* whoever sits there started this session, and may approve its calls */
};

/* True when a call may be approved by somebody. */
bool person_may_approve (struct session *s, const struct running_task *t);
/* Asks and waits, without the loop lock; <timeout_ms> UINT64_MAX: as long as it takes. False: no
 * answer came. */
bool person_ask (struct session *s, const struct running_task *t, const struct question *question,
                 uint64_t timeout_ms, struct question_reply *reply);
