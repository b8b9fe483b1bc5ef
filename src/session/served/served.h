/* SPDX-License-Identifier: Apache-2.0
 *
 * What a session serves to MCP clients: its exported tools, itself as one tool, its skills and
 * files.
 *
 * A call runs on the transport's thread and acts as the task loop while it holds the loop lock.
 * Always true: a served call passes the gates, the policy and the trace a model's call passes; all
 * calls belong to one task of the trace, whose turns number them.
 */
#pragma once

#include "door/tasks/tasks.h"
#include "mcp/server.h"
#include "session/state/session.h"

struct served;

/* Reads exports.mcp of a staged session. E-MCP-010. */
void served_free (struct session *s);

/* The launch in its order; all but the first do nothing where nothing is served. After the end no
 * call runs. */
bool served_begin (struct session *s, struct mur_error **err); /* exports.mcp: E-MCP-010 */
void served_at_door (struct session *s, bool is_authenticated);
bool served_start (struct session *s, struct mur_error **err);
void served_end (struct session *s);
