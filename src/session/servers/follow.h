/* SPDX-License-Identifier: Apache-2.0
 *
 * A call that a server answers with a task (io.modelcontextprotocol/tasks): asked after until it
 * is over.
 *
 * Always true: bounded like a call, by its time without news and in all; a task that nobody waits
 * for any more is cancelled; what it wants of a person goes the way a call's questions go.
 */
#pragma once

#include "session/servers/server.h"

struct server_follow {
    uint64_t idle_ms, cap_ms;
    struct cancel *cancel; /* not NULL */
    /* Answers its questions: a new object of responses, or NULL with *err. May be NULL. */
    json_t *(*input) (void *ctx, const json_t *requests, struct mur_error **err);
    void *ctx;
    uint64_t news; /* how often something new was said */
};

/* True for the result of a call that is a task. */
bool server_is_task (const json_t *result);
/* The result the task ends with, a new value; NULL with *err: E-MCP-002, E-MCP-005; without one
 * when <cancel> was raised. */
json_t *server_follow (struct mcp_server *s, const json_t *created, struct server_follow *f,
                       struct mur_error **err);
