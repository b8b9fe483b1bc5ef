/* SPDX-License-Identifier: Apache-2.0
 *
 * One JSON-RPC 2.0 message of MCP, read and written. Batches belong to one old revision alone and
 * are refused in all.
 *
 * Always true: a message that was read is well formed, or says which error it is answered with; an
 * id is a string or an integer and is returned as it was sent.
 */
#pragma once

#include "base/json.h"
#include "mcp/protocol.h"

#define MCP_MESSAGE_MAX ((size_t)16 << 20) /* bytes of one message */

enum mcp_kind {
    MCP_BAD, /* code and why say what is answered; id when there was one */
    MCP_REQUEST,
    MCP_NOTIFICATION,
    MCP_RESPONSE, /* result or error */
};

struct mcp_message {
    enum mcp_kind kind;
    json_t *whole; /* owned; what follows is borrowed from it */
    const json_t *id;
    const char *method;
    const json_t *params; /* an object, or NULL */
    const json_t *result, *error;
    enum mcp_code code;
    const char *why; /* static */
};

void mcp_message_read (struct mcp_message *m, const char *text, size_t len);
void mcp_message_clear (struct mcp_message *m);
#define _cleanup_mcp_message_ _cleanup_ (mcp_message_clear)

/* The texts below are owned and hold no line feed. <id> NULL is null. */
char *mcp_result_text (const json_t *id, const json_t *result);
char *
mcp_error_text (const json_t *id, enum mcp_code code, const char *message, const json_t *data);
/* <id> NULL: a notification; <params> may be NULL. */
char *mcp_request_text (const json_t *id, const char *method, const json_t *params);
