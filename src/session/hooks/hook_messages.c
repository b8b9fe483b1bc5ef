/* SPDX-License-Identifier: Apache-2.0 */
#include "session/hooks/hook_messages.h"

#include "base/alloc.h"

#include <string.h>

static const char *const role_names[] = { "user", "assistant", "tool" };

static const char *
envelope (const json_t *wire, struct arena *arena)
{
    const char *id = json_get_string (wire, "tool_call_id");
    _cleanup_json_ json_t *e = json_object ();
    json_object_set_new (e, "__murmur_tool_msg__", json_true ());
    json_set_string (e, "tool_call_id", id ? id : "");
    json_set_bool (e, "is_error", json_is_true (json_object_get (wire, "is_error")));
    json_t *body = json_object_get (wire, "content");
    json_object_set (e, "body", body ? body : json_null ());
    _cleanup_free_ char *text = json_text (e, JSON_TEXT_ORDERED);
    return arena_strdup (arena, text);
}

void
hook_message_fill (const struct message *m, struct arena *arena, struct hook_message *out)
{
    _cleanup_json_ json_t *wire = json_loadb (m->wire, m->wire_len, 0, NULL);
    *out = (struct hook_message){
        .role = role_names[m->role],
        .id = arena_strdup (arena, m->id),
        .source_id = m->source_id ? arena_strdup (arena, m->source_id) : NULL,
        .inserted_by = m->inserted_by ? arena_strdup (arena, m->inserted_by) : NULL,
    };
    if (m->role == MESSAGE_TOOL) {
        out->content = envelope (wire, arena);
    } else {
        _cleanup_free_ char *text = json_text (json_object_get (wire, "content"), JSON_TEXT_SORTED);
        out->content = arena_strdup (arena, text);
    }
    out->content_len = strlen (out->content);
}

/* --- back --- */

static bool
is_block_array (const json_t *value)
{
    if (! json_is_array (value))
        return false;
    for (size_t i = 0; i < json_array_size (value); i++)
        if (! json_get_string (json_array_get (value, i), "type"))
            return false;
    return true;
}

static json_t *
text_blocks (const char *text, size_t len)
{
    json_t *block = json_object ();
    json_set_string_n (block, "text", text, len);
    json_set_string (block, "type", "text");
    json_t *list = json_array ();
    json_array_append_new (list, block);
    return list;
}

/* Content that is no tool message's: a block array, a JSON string, or the text itself. */
static json_t *
blocks_of (const struct hook_message *m)
{
    json_t *value = json_loadb (m->content, m->content_len, JSON_DECODE_ANY, NULL);
    if (is_block_array (value))
        return value;
    json_t *blocks = json_is_string (value)
                         ? text_blocks (json_string_value (value), json_string_length (value))
                         : text_blocks (m->content, m->content_len);
    json_decref (value);
    return blocks;
}

static struct message *
tool_message (const struct hook_message *m)
{
    _cleanup_json_ json_t *e = json_loadb (m->content, m->content_len, 0, NULL);
    const char *id = json_get_string (e, "tool_call_id");
    json_t *body = json_object_get (e, "body");
    if (! json_is_true (json_object_get (e, "__murmur_tool_msg__")) || ! id || ! id[0] || ! body)
        return NULL;
    _cleanup_json_ json_t *blocks =
        is_block_array (body)   ? json_incref (body)
        : json_is_string (body) ? text_blocks (json_string_value (body), json_string_length (body))
                                : NULL;
    return blocks ? message_new_content (MESSAGE_TOOL, blocks, id,
                                         json_is_true (json_object_get (e, "is_error")))
                  : NULL;
}

struct message *
hook_message_take (const struct hook_message *m)
{
    struct message *made;
    if (strcmp (m->role, "tool") == 0) {
        made = tool_message (m);
    } else {
        _cleanup_json_ json_t *blocks = blocks_of (m);
        made = message_new_content (strcmp (m->role, "assistant") == 0 ? MESSAGE_ASSISTANT
                                                                       : MESSAGE_USER,
                                    blocks, NULL, false);
    }
    if (! made)
        return NULL;
    if (m->id && m->id[0]) {
        free (made->id);
        made->id = x_strdup (m->id);
    }
    made->source_id = m->source_id ? x_strdup (m->source_id) : NULL;
    return made;
}
