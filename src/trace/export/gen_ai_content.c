/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/export/gen_ai_content.h"

#include "base/alloc.h"
#include "base/digest.h"

#include <string.h>

#define BLOB_LIMIT_BYTES (8u << 20)

char *
gen_ai_blob (struct fs_root *records, const char *sha)
{
    if (! records || ! sha || ! sha256_hex_is_valid (sha))
        return NULL;
    char path[sizeof "blobs/" + SHA256_HEX_LEN];
    snprintf (path, sizeof path, "blobs/%s", sha);
    struct buf body = { 0 };
    if (! fs_read (records, path, BLOB_LIMIT_BYTES, &body, NULL)) {
        buf_free (&body);
        return NULL;
    }
    return buf_steal (&body);
}

static json_t *
blob_json (struct fs_root *records, const char *sha)
{
    _cleanup_free_ char *text = gen_ai_blob (records, sha);
    return text ? json_loads (text, JSON_DECODE_ANY, NULL) : NULL;
}

/* --- parts --- */

static json_t *
text_part (const char *type, const char *text)
{
    return json_pack ("{s:s, s:s}", "type", type, "content", text);
}

/* One content item; NULL for a kind the conventions do not know. */
static json_t *
part_of (const json_t *item)
{
    const char *type = json_get_string (item, "type");
    if (str_eq (type, "text") && json_get_string (item, "text"))
        return text_part ("text", json_get_string (item, "text"));
    if (str_eq (type, "thinking") && json_get_string (item, "thinking"))
        return text_part ("reasoning", json_get_string (item, "thinking"));
    if (! str_eq (type, "tool_call"))
        return NULL;
    json_t *part = json_pack ("{s:s}", "type", "tool_call");
    json_set_string (part, "id", json_get_string (item, "id"));
    json_set_string (part, "name", json_get_string (item, "name"));
    json_object_set (part, "arguments", json_object_get (item, "input"));
    return part;
}

static json_t *
parts_of (const json_t *content)
{
    json_t *parts = json_array ();
    size_t i;
    json_t *item;
    json_array_foreach (content, i, item)
    {
        json_t *part = part_of (item);
        if (part)
            json_array_append_new (parts, part);
    }
    return parts;
}

char *
gen_ai_plain_text (const json_t *message)
{
    struct buf text = { 0 };
    size_t i;
    json_t *part;
    json_array_foreach (json_object_get (message, "parts"), i,
                        part) if (str_eq (json_get_string (part, "type"), "text"))
        buf_puts (&text, json_get_string (part, "content"));
    if (text.len)
        return buf_steal (&text);
    buf_free (&text);
    return NULL;
}

/* A tool's message carries one response, whatever its text parts are. */
static json_t *
tool_response (const json_t *stored, json_t *parts)
{
    _cleanup_json_ json_t *whole = json_pack ("{s:o}", "parts", parts);
    _cleanup_free_ char *text = gen_ai_plain_text (whole);
    json_t *part = json_pack ("{s:s}", "type", "tool_call_response");
    json_set_string (part, "id", json_get_string (stored, "tool_call_id"));
    json_set_string (part, "response", text ? text : "");
    return json_pack ("[o]", part);
}

/* One stored message ({role, content: [...]}) in the conventions' form, or NULL. */
static json_t *
gen_ai_message (const json_t *stored)
{
    const char *role = json_get_string (stored, "role");
    if (! role)
        return NULL;
    json_t *parts = parts_of (json_object_get (stored, "content"));
    if (str_eq (role, "tool"))
        parts = tool_response (stored, parts);
    return json_pack ("{s:s, s:o}", "role", role, "parts", parts);
}

/* --- whole attributes --- */

char *
gen_ai_input_messages (struct fs_root *records, const json_t *shas)
{
    _cleanup_json_ json_t *messages = json_array ();
    size_t i;
    json_t *sha;
    json_array_foreach (shas, i, sha)
    {
        _cleanup_json_ json_t *stored = blob_json (records, json_string_value (sha));
        json_t *message = gen_ai_message (stored);
        if (! message)
            return NULL;
        json_array_append_new (messages, message);
    }
    return json_array_size (messages) ? json_text (messages, JSON_TEXT_ORDERED) : NULL;
}

char *
gen_ai_output_messages (struct fs_root *records, const char *sha, const char *finish_reason)
{
    _cleanup_json_ json_t *stored = blob_json (records, sha);
    const json_t *content = json_object_get (stored, "content");
    if (! json_is_array (content))
        return NULL;
    _cleanup_json_ json_t *messages =
        json_pack ("[{s:s, s:o}]", "role", "assistant", "parts", parts_of (content));
    if (finish_reason)
        json_set_string (json_array_get (messages, 0), "finish_reason", finish_reason);
    return json_text (messages, JSON_TEXT_ORDERED);
}

char *
gen_ai_system_instructions (struct fs_root *records, const char *sha)
{
    _cleanup_free_ char *text = gen_ai_blob (records, sha);
    if (! text)
        return NULL;
    _cleanup_json_ json_t *parts = json_pack ("[o]", text_part ("text", text));
    return json_text (parts, JSON_TEXT_ORDERED);
}
