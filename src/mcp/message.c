/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/message.h"

#include <string.h>

static void
refuse (struct mcp_message *m, enum mcp_code code, const char *why)
{
    m->kind = MCP_BAD;
    m->code = code;
    m->why = why;
}

static bool
is_id (const json_t *id)
{
    return json_is_string (id) || json_is_integer (id);
}

static void
read_response (struct mcp_message *m)
{
    m->result = json_object_get (m->whole, "result");
    m->error = json_object_get (m->whole, "error");
    if (! m->result == ! m->error)
        refuse (m, MCP_INVALID_REQUEST, "neither a request nor an answer");
    else if (m->error && ! json_is_object (m->error))
        refuse (m, MCP_INVALID_REQUEST, "error must be an object");
    else if (! m->id && m->result)
        refuse (m, MCP_INVALID_REQUEST, "an answer needs the id of its request");
    else
        m->kind = MCP_RESPONSE;
}

static void
read_call (struct mcp_message *m, bool has_id)
{
    const json_t *params = json_object_get (m->whole, "params");
    if (params && ! json_is_object (params)) {
        refuse (m, MCP_INVALID_REQUEST, "params must be an object");
        return;
    }
    m->params = params;
    m->kind = has_id ? MCP_REQUEST : MCP_NOTIFICATION;
}

void
mcp_message_read (struct mcp_message *m, const char *text, size_t len)
{
    *m = (struct mcp_message){ 0 };
    if (len > MCP_MESSAGE_MAX) {
        refuse (m, MCP_INVALID_REQUEST, "the message is larger than 16 MiB");
        return;
    }
    m->whole = json_loadb (text, len, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
    if (! m->whole) {
        refuse (m, MCP_PARSE_ERROR,
                utf8_is_valid (text, len) ? "not JSON" : "the message is not UTF-8");
        return;
    }
    if (! json_is_object (m->whole)) {
        refuse (m, MCP_INVALID_REQUEST,
                json_is_array (m->whole) ? "batches are not served" : "not a JSON object");
        return;
    }
    json_t *id = json_object_get (m->whole, "id"), *method = json_object_get (m->whole, "method");
    m->id = is_id (id) ? id : NULL;
    if (! str_eq (json_get_string (m->whole, "jsonrpc"), "2.0"))
        refuse (m, MCP_INVALID_REQUEST, "jsonrpc must be \"2.0\"");
    else if (id && ! m->id && (method || ! json_is_null (id)))
        refuse (m, MCP_INVALID_REQUEST, "id must be a string or an integer");
    else if (! method)
        read_response (m);
    else if (! json_is_string (method))
        refuse (m, MCP_INVALID_REQUEST, "method must be a string");
    else {
        m->method = json_string_value (method);
        read_call (m, id != NULL);
    }
}

void
mcp_message_clear (struct mcp_message *m)
{
    json_decref (m->whole);
    *m = (struct mcp_message){ 0 };
}

static void
set_borrowed (json_t *o, const char *key, const json_t *value)
{
    json_object_set (o, key, (json_t *)(uintptr_t)value);
}

static json_t *
envelope (void)
{
    json_t *o = json_object ();
    json_set_string (o, "jsonrpc", "2.0");
    return o;
}

static void
set_id (json_t *o, const json_t *id)
{
    if (id)
        set_borrowed (o, "id", id);
    else
        json_object_set_new (o, "id", json_null ());
}

char *
mcp_result_text (const json_t *id, const json_t *result)
{
    _cleanup_json_ json_t *o = envelope ();
    set_id (o, id);
    set_borrowed (o, "result", result);
    return json_text (o, JSON_TEXT_ORDERED);
}

char *
mcp_error_text (const json_t *id, enum mcp_code code, const char *message, const json_t *data)
{
    _cleanup_json_ json_t *o = envelope ();
    json_t *error = json_object ();
    set_id (o, id);
    json_object_set_new (error, "code", json_integer (code));
    json_set_string (error, "message", message);
    if (data)
        set_borrowed (error, "data", data);
    json_object_set_new (o, "error", error);
    return json_text (o, JSON_TEXT_ORDERED);
}

char *
mcp_request_text (const json_t *id, const char *method, const json_t *params)
{
    _cleanup_json_ json_t *o = envelope ();
    if (id)
        set_borrowed (o, "id", id);
    json_set_string (o, "method", method);
    if (params)
        set_borrowed (o, "params", params);
    return json_text (o, JSON_TEXT_ORDERED);
}
