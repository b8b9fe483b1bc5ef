/* SPDX-License-Identifier: Apache-2.0
 *
 * The JSON-RPC envelope: reading a request, writing results and errors (spec/door.md 4).
 */
#pragma once

#include "base/json.h"

struct envelope {
    char *id; /* JSON text, echoed as sent; "null" when it cannot be */
    char *method;
    json_t *params; /* whatever was sent; an empty object when absent */
};

/* 0, or the code of the refusal (-32700, -32600); id is set either way. */
int envelope_read (const char *body, size_t len, struct envelope *out);
void envelope_clear (struct envelope *e);

/* {"jsonrpc":"2.0","id":<id>,"result":<result>}: result is JSON text. Owned. */
char *envelope_result (const char *id, const char *result);

enum rpc_error {
    RPC_PARSE = -32700,
    RPC_INVALID_REQUEST = -32600,
    RPC_METHOD_NOT_FOUND = -32601,
    RPC_INVALID_PARAMS = -32602,
    RPC_INTERNAL = -32603,
    RPC_TASK_NOT_FOUND = -32001,
    RPC_TASK_NOT_CANCELABLE = -32002,
    RPC_PUSH_NOT_SUPPORTED = -32003,
    RPC_UNSUPPORTED_OPERATION = -32004,
    RPC_CONTENT_TYPE_NOT_SUPPORTED = -32005,
    RPC_VERSION_NOT_SUPPORTED = -32009,
    RPC_COMPLETION_MISADDRESSED = -31001,
    RPC_COMPLETION_NOT_AWAITED = -31002,
};

/* The error answer; message NULL takes the code's own text; metadata (object of strings, taken
 * over) NULL = {} where the code carries data. Owned. */
char *envelope_error (const char *id, int code, const char *message, json_t *metadata);
