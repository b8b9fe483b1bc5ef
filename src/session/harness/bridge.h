/* SPDX-License-Identifier: Apache-2.0
 *
 * The tool bridge: the session's tools as an MCP server on 127.0.0.1, for the harness of one run
 * (docs/spec/session.md 6.1).
 *
 * A thread accepts, each connection has one of its own and serves one request. Always true:
 * without the run's token nothing is answered; every call passes the session's gates first, and is
 * refused when they cannot be asked any more; at most 16 calls run at once.
 *
 * Of HTTP/1.1 and JSON-RPC 2.0 it has as much as MCP over one POST needs.
 */
#pragma once

#include "session/harness/harness.h"

struct bridge;

/* A listener for bridges to come, and its port. E-IO-003. */
int bridge_listen (uint16_t *port, struct mur_error **err);
/* Listens. <task> is whose calls they are. E-IO-003. */
struct bridge *bridge_open (struct session *s, struct running_task *task, struct mur_error **err);
/* Refuses further calls, abandons those under way and waits for them. The loop lock is held by the
 * caller and let go of meanwhile. */
void bridge_close (struct bridge *b);
const char *bridge_url (const struct bridge *b);
const char *bridge_token (const struct bridge *b);
/* When a request came last (monotonic ms); now, while a call runs; 0: never. */
uint64_t bridge_active_ms (struct bridge *b);
