/* SPDX-License-Identifier: Apache-2.0
 *
 * MCP at the door: /mcp, streamable HTTP of both eras.
 *
 * What may wait runs on a thread of its own and answers a held exchange or a stream. Always true: a
 * modern client that closes its stream has cancelled the call, a legacy one has not; no answer
 * carries a header that lets pages of other sites read it.
 */
#pragma once

#include "door/callers/auth.h"
#include "mcp/server.h"
#include "net/server/http_exchange.h"

#define PLANE_MCP       "/mcp"
#define MCP_SCOPE_TOOLS "mcp/tools"
#define MCP_SCOPE_ASK   "mcp/ask"

struct mcp_plane_spec {
    const struct mcp_service *service; /* borrowed until mcp_plane_free */
    const char *ask_tool; /* the capsule as a tool, which has a scope of its own; NULL: none */
    bool is_loopback;     /* the door is bound there: a foreign Host is refused */
};

struct mcp_plane;

/* Copies the spec; <auth> is borrowed, NULL for a public door. */
struct mcp_plane *mcp_plane_new (const struct mcp_plane_spec *spec, const struct door_auth *auth);
/* No call runs after this; answers under way are given up. NULL is fine. */
void mcp_plane_stop (struct mcp_plane *p);
/* After the server's end. NULL is fine. */
void mcp_plane_free (struct mcp_plane *p);

/* True when the head alone refused the request; <credential> came through, NULL on a public door.
 */
bool mcp_plane_refuse (struct mcp_plane *p, struct http_exchange *x, const char *credential);
void mcp_plane_serve (struct mcp_plane *p, struct http_exchange *x, const char *credential);
