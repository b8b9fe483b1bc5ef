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
struct stdio_server;

/* Reads exports.mcp of a staged session. E-MCP-010. */
struct served *served_new (struct session *s, struct mur_error **err);
void served_free (struct session *s);
const struct mcp_service *served_service (const struct served *v);
/* Grows when the tools a client may see have changed. */
uint64_t served_generation (struct served *v);

/* The launch in its order; all but the first do nothing where nothing is served. After the end no
 * call runs. */
bool served_begin (struct session *s, struct mur_error **err); /* exports.mcp: E-MCP-010 */
void served_at_door (struct session *s, bool is_authenticated);
bool served_start (struct session *s, struct mur_error **err);
void served_end (struct session *s);
/* After a call: clients are told when it changed the tools. */
void served_tell_changes (struct served *v);

/* --- stdio.c --- */

/* Serves one client on two descriptors, taken over. <ended> is called once, on the server's thread,
 * when the client is gone. E-IO-003. */
struct stdio_server *
stdio_server_start (struct served *v, int in_fd, int out_fd, void (*ended) (void *ctx), void *ctx,
                    struct mur_error **err);
/* Ends calls under way and waits for them. */
void stdio_server_stop (struct stdio_server *x);
