/* SPDX-License-Identifier: Apache-2.0
 *
 * A client's message as a streamable HTTP request: the headers that repeat what its body says, and
 * what an answer's head promises of its body.
 *
 * Always true: a header's value is one line; what the body says decides, never what was sent
 * before.
 */
#pragma once

#include "mcp/client.h"

#define MCP_SESSION_HEADER "mcp-session-id"
#define MCP_SESSION_MAX    1024 /* bytes of a session's id */

/* Appends name, value, name, value ... for a message of <method> (NULL: an answer, or no message).
 * <schema>: of the tool that is called; NULL: none is, or it is unknown. */
void mcp_post_headers (const struct mcp_client *c, const char *method, const json_t *params,
                       const json_t *schema, struct strv *out);
/* True for what may be sent back as a session's id: visible ASCII, bounded. */
bool mcp_session_id_is_valid (const char *id);

enum mcp_body {
    MCP_BODY_OTHER,
    MCP_BODY_JSON,
    MCP_BODY_EVENTS,
};
/* <content_type> may be NULL. */
enum mcp_body mcp_body_of (const char *content_type);

/* The tools without those whose header annotations are invalid: over HTTP they cannot be called.
 * A new array; the names of what was dropped are appended to <dropped>, which may be NULL. */
json_t *mcp_tools_over_http (const json_t *tools, struct strv *dropped);
