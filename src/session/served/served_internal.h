/* SPDX-License-Identifier: Apache-2.0
 *
 * The served session as the files of this folder share it.
 */
#pragma once

#include "session/served/served.h"

struct served {
    struct session *s;
    const struct exported_mcp *exported;
    struct mcp_service service;
    struct task task; /* whose calls these are, in the trace */
    bool has_begun;   /* task_start is written; under the loop lock, like the rest */
    uint64_t calls;   /* the turn of the next one */
    uint64_t started_ms;
    int in_fd, out_fd; /* -1: handed on, or none */
    struct stdio_server *stdio;
    bool is_authenticated; /* the door is: who comes over stdio is its operator */
    _Atomic uint64_t told; /* the generation of the tools the door's clients were told of */
};

/* served_calls.c: functions of the service. */
mcp_serve_fn served_tools_list, served_tools_call;
/* ask.c: a task for the capsule's own agent, and what came of it. */
void served_ask (struct served *v, const struct mcp_call *call, struct mcp_answer *answer);
json_t *served_ask_tool (const struct served *v);
