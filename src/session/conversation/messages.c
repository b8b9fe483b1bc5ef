/* SPDX-License-Identifier: Apache-2.0 */
#include "session/conversation/messages.h"
#include "base/json_write.h"

#include "base/alloc.h"
#include "base/tokens.h"

#include <string.h>

#define CONTENT_START (sizeof ("{\"content\":") - 1)

static const char *const role_names[] = { "user", "assistant", "tool" };

/* Keys of a message that are the runtime's own and never reach a provider. */
static const char *const runtime_keys[] = { "id",    "source_id",   "canceled",   "truncated",
                                            "fence", "inserted_by", "produced_by" };

static struct message *
message_new (enum message_role role)
{
    struct message *m = x_new0 (struct message);
    m->role = role;
    m->id = x_strdup (id_new ("msg_").text);
    return m;
}

static void
append_text_block (struct buf *b, const char *text, size_t len)
{
    buf_puts (b, "[{\"text\":");
    json_append_string (b, text, len);
    buf_puts (b, ",\"type\":\"text\"}]");
}

/* <b> holds {"content":<content>; adds the rest of the wire text and takes the bytes over. */
static void
finish_wire (struct message *m, struct buf *b, bool is_error, const char *tool_call_id)
{
    m->content_len = b->len - CONTENT_START;
    if (m->role == MESSAGE_TOOL)
        buf_puts (b, is_error ? ",\"is_error\":true" : ",\"is_error\":false");
    buf_printf (b, ",\"role\":\"%s\"", role_names[m->role]);
    if (m->role == MESSAGE_TOOL) {
        buf_puts (b, ",\"tool_call_id\":");
        const char *id = tool_call_id ? tool_call_id : "";
        json_append_string (b, id, strlen (id));
    }
    buf_putc (b, '}');
    m->wire_len = b->len;
    m->wire = buf_steal (b);
}

struct message *
message_new_user (const char *text, size_t len, const char *fence)
{
    struct message *m = message_new (MESSAGE_USER);
    struct buf b = { 0 };
    buf_puts (&b, "{\"content\":");
    append_text_block (&b, text, len);
    finish_wire (m, &b, false, NULL);
    m->fence = fence ? x_strdup (fence) : NULL;
    return m;
}

struct message *
message_new_content (enum message_role role, const json_t *content, const char *tool_call_id,
                     bool is_error)
{
    struct message *m = message_new (role);
    struct buf b = { 0 };
    buf_puts (&b, "{\"content\":");
    if (json_is_array (content))
        json_append (&b, content, JSON_TEXT_SORTED);
    else
        buf_puts (&b, "[]");
    finish_wire (m, &b, is_error, tool_call_id);
    return m;
}

struct message *
message_new_assistant (const json_t *content)
{
    return message_new_content (MESSAGE_ASSISTANT, content, NULL, false);
}

struct message *
message_new_tool (const char *tool_call_id, bool is_error, const char *text, size_t len,
                  const char *fence)
{
    struct message *m = message_new (MESSAGE_TOOL);
    struct buf b = { 0 };
    buf_puts (&b, "{\"content\":");
    append_text_block (&b, text, len);
    finish_wire (m, &b, is_error, tool_call_id);
    m->fence = fence ? x_strdup (fence) : NULL;
    return m;
}

static char *
copy_member (const json_t *object, const char *key)
{
    const char *text = json_get_string (object, key);
    return text ? x_strdup (text) : NULL;
}

struct message *
message_from_record (const json_t *line)
{
    const char *role = json_get_string (line, "role");
    if (! role)
        return NULL;
    struct message *m = x_new0 (struct message);
    m->role = strcmp (role, "assistant") == 0 ? MESSAGE_ASSISTANT
              : strcmp (role, "tool") == 0    ? MESSAGE_TOOL
                                              : MESSAGE_USER;
    const char *id = json_get_string (line, "id");
    m->id = x_strdup (id ? id : id_new ("msg_").text);
    m->source_id = copy_member (line, "source_id");
    m->inserted_by = copy_member (line, "inserted_by");
    m->fence = copy_member (line, "fence");
    const json_t *produced_by = json_object_get (line, "produced_by");
    m->produced_by_driver = copy_member (produced_by, "driver");
    m->produced_by_model = copy_member (produced_by, "model");
    m->is_canceled = json_is_true (json_object_get (line, "canceled"));
    m->is_truncated = json_is_true (json_object_get (line, "truncated"));
    m->is_recorded = true; /* it was read from there */

    _cleanup_json_ json_t *wire = json_copy ((json_t *)(uintptr_t)line);
    for (size_t i = 0; i < ARRAY_LEN (runtime_keys); i++)
        json_object_del (wire, runtime_keys[i]);
    struct buf b = { 0 };
    json_append (&b, wire, JSON_TEXT_SORTED);
    m->wire_len = b.len;
    m->wire = buf_steal (&b);
    return m;
}

void
message_free (struct message *m)
{
    if (! m)
        return;
    free (m->id);
    free (m->wire);
    free (m->source_id);
    free (m->inserted_by);
    free (m->fence);
    free (m->produced_by_driver);
    free (m->produced_by_model);
    message_free (m->bare);
    free (m);
}

static void
message_append (struct buf *b, const char *key, const char *value)
{
    if (! value)
        return;
    buf_printf (b, ",\"%s\":", key);
    json_append_string (b, value, strlen (value));
}

void
message_append_line (const struct message *m, struct buf *out)
{
    const char *content = m->wire + CONTENT_START;
    const char *rest = content + m->content_len; /* ,"is_error":…,"role":…,"tool_call_id":…} */
    buf_putc (out, '{');
    if (m->is_canceled)
        buf_puts (out, "\"canceled\":true,");
    buf_puts (out, "\"content\":");
    buf_append (out, content, m->content_len);
    message_append (out, "fence", m->fence);
    message_append (out, "id", m->id);
    message_append (out, "inserted_by", m->inserted_by);
    const char *role = strstr (rest, ",\"role\":");
    buf_append (out, rest, (size_t)(role - rest));
    if (m->produced_by_driver) {
        buf_puts (out, ",\"produced_by\":{\"driver\":");
        json_append_string (out, m->produced_by_driver, strlen (m->produced_by_driver));
        message_append (out, "model", m->produced_by_model ? m->produced_by_model : "");
        buf_putc (out, '}');
    }
    buf_printf (out, ",\"role\":\"%s\"", role_names[m->role]);
    message_append (out, "source_id", m->source_id);
    const char *call_id = strstr (role, ",\"tool_call_id\":");
    if (call_id)
        buf_append (out, call_id, strlen (call_id) - 1);
    if (m->is_truncated)
        buf_puts (out, ",\"truncated\":true");
    buf_putc (out, '}');
}

void
message_set_producer (struct message *m, const char *driver, const char *model)
{
    free (m->produced_by_driver);
    free (m->produced_by_model);
    m->produced_by_driver = x_strdup (driver);
    m->produced_by_model = x_strdup (model);
}

static bool
is_thinking (const json_t *block)
{
    return str_eq (json_get_string (block, "type"), "thinking");
}

static void
make_bare (struct message *m)
{
    _cleanup_json_ json_t *wire = json_loadb (m->wire, m->wire_len, 0, NULL);
    json_t *content = json_object_get (wire, "content");
    size_t before = json_array_size (content);
    for (size_t i = before; i-- > 0;)
        if (is_thinking (json_array_get (content, i)))
            json_array_remove (content, i);
    size_t left = json_array_size (content);
    m->is_bare_known = true;
    m->is_bare_empty = left == 0 && before > 0;
    if (left == before || m->is_bare_empty)
        return;
    m->bare = message_new_content (m->role, content, NULL, false);
    free (m->bare->id);
    m->bare->id = x_strdup (m->id);
}

struct message *
message_without_thinking (struct message *m)
{
    if (m->role != MESSAGE_ASSISTANT)
        return m;
    if (! m->is_bare_known)
        make_bare (m);
    return m->is_bare_empty ? NULL : m->bare ? m->bare : m;
}

const char *
message_sha (struct message *m)
{
    if (! m->sha[0])
        sha256_hex (m->wire, m->wire_len, m->sha);
    return m->sha;
}

uint64_t
message_tokens (struct message *m)
{
    if (! m->is_counted) {
        m->tokens = tokens_count (m->wire, m->wire_len);
        m->is_counted = true;
    }
    return m->tokens;
}

void
message_list_add (struct message_list *l, struct message *m)
{
    x_grow (l->items, l->len, l->cap);
    l->items[l->len++] = m;
}

void
message_list_clear (struct message_list *l)
{
    for (size_t i = 0; i < l->len; i++)
        message_free (l->items[i]);
    free (l->items);
    *l = (struct message_list){ 0 };
}

long
message_list_find (const struct message_list *l, const char *id)
{
    for (size_t i = 0; i < l->len; i++)
        if (strcmp (l->items[i]->id, id) == 0)
            return (long)i;
    return -1;
}
