/* SPDX-License-Identifier: Apache-2.0
 *
 * A call as a task of its client (io.modelcontextprotocol/tasks).
 */
#pragma once

#include "manifest/capsule/capsule.h"
#include "session/served/held.h"

/* How the call of that tool may go on as a task of a client that knows tasks; NULL: never. */
const struct exported_task *held_as_task (const struct exported_mcp *m, const char *tool);
/* True when a tool is called as a task only. */
bool held_needs_tasks (const struct exported_mcp *m);
/* Serve tasks/get, tasks/update and tasks/cancel. False: it is no call of that client. */
bool held_task_get (struct served *v, const struct mcp_call *call, struct mcp_answer *answer);
bool held_task_update (struct served *v, const struct mcp_call *call, const json_t *responses,
                       struct mcp_answer *answer);
bool held_task_cancel (struct served *v, const struct mcp_call *call, struct mcp_answer *answer);
