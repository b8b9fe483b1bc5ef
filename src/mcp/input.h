/* SPDX-License-Identifier: Apache-2.0
 *
 * What a server may ask of a client while a call runs: its person, its model, its folders.
 *
 * Always true: what a client did not declare is asked of nobody; a kind that is not a row here is
 * refused by name.
 */
#pragma once

#include "base/json.h"

enum mcp_input {
    MCP_INPUT_ELICITATION = 1, /* of the person */
    MCP_INPUT_SAMPLING = 2,    /* of the client's model */
    MCP_INPUT_ROOTS = 4,       /* which folders it works in */
};

/* The kind a method is; 0: none. */
unsigned mcp_input_of (const char *method);
/* The kinds of {key: {method, params}}; 0 when one of them is none, or there are none. */
unsigned mcp_inputs_of (const json_t *requests);
/* The kinds a client declared. */
unsigned mcp_inputs_declared (const json_t *capabilities);
/* The other way round: a new object. */
json_t *mcp_inputs_capabilities (unsigned kinds);
/* True when a client that declared those takes {method, params} in its particulars, too. */
bool mcp_input_is_taken (const json_t *capabilities, const json_t *request);
/* True for a result that answers <request>, of whatever content. */
bool mcp_input_is_answered (const json_t *request, const json_t *response);
