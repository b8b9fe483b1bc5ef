/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/input.h"

#include "base/buf.h"

static const struct {
    enum mcp_input kind;
    const char *method, *capability;
    const char *answer; /* the member its result has */
} inputs[] = {
    { MCP_INPUT_ELICITATION, "elicitation/create", "elicitation", "action" },
    { MCP_INPUT_SAMPLING, "sampling/createMessage", "sampling", "content" },
    { MCP_INPUT_ROOTS, "roots/list", "roots", "roots" },
};

unsigned
mcp_input_of (const char *method)
{
    for (size_t i = 0; i < ARRAY_LEN (inputs); i++)
        if (str_eq (inputs[i].method, method))
            return inputs[i].kind;
    return 0;
}

unsigned
mcp_inputs_of (const json_t *requests)
{
    unsigned kinds = 0;
    const char *key;
    json_t *request;
    json_object_foreach ((json_t *)(uintptr_t)requests, key, request)
    {
        unsigned kind = mcp_input_of (json_get_string (request, "method"));
        if (! kind)
            return 0;
        kinds |= kind;
    }
    return kinds;
}

unsigned
mcp_inputs_declared (const json_t *capabilities)
{
    unsigned kinds = 0;
    for (size_t i = 0; i < ARRAY_LEN (inputs); i++)
        if (json_is_object (json_object_get (capabilities, inputs[i].capability)))
            kinds |= inputs[i].kind;
    return kinds;
}

json_t *
mcp_inputs_capabilities (unsigned kinds)
{
    json_t *o = json_object ();
    for (size_t i = 0; i < ARRAY_LEN (inputs); i++)
        if (kinds & inputs[i].kind)
            json_object_set_new (o, inputs[i].capability, json_object ());
    return o;
}

bool
mcp_input_is_taken (const json_t *capabilities, const json_t *request)
{
    unsigned kind = mcp_input_of (json_get_string (request, "method"));
    const json_t *params = json_object_get (request, "params");
    const char *mode = json_get_string (params, "mode");
    if (! kind || ! (mcp_inputs_declared (capabilities) & kind))
        return false;
    if (kind == MCP_INPUT_ELICITATION) /* who declared no mode takes forms */
        return ! mode || str_eq (mode, "form") ||
               json_object_get (json_object_get (capabilities, "elicitation"), mode);
    return kind != MCP_INPUT_SAMPLING || ! json_object_get (params, "tools") ||
           json_object_get (json_object_get (capabilities, "sampling"), "tools");
}

bool
mcp_input_is_answered (const json_t *request, const json_t *response)
{
    const char *method = json_get_string (request, "method");
    for (size_t i = 0; i < ARRAY_LEN (inputs); i++)
        if (str_eq (inputs[i].method, method))
            return json_object_get (response, inputs[i].answer) != NULL;
    return false;
}
