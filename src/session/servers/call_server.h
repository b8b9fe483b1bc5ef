/* SPDX-License-Identifier: Apache-2.0
 *
 * One call of a server's tool: opened, judged, asked, and its result made text for the model.
 */
#pragma once

#include "session/state/call.h"
#include "session/state/outcome.h"
#include "session/state/session.h"

struct running_task;

/* Runs a call of one of their tools and fences what came back. */
void servers_call (struct session *s, struct running_task *task, const struct tool_entry *tool,
                   const struct call *call, struct call_outcome *out);
