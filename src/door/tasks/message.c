/* SPDX-License-Identifier: Apache-2.0 */
#include "door/tasks/message.h"

#include "base/alloc.h"
#include "base/json.h"
#include "door/card/card.h"
#include "door/tasks/task_state.h"

#include <ctype.h>
#include <string.h>

#define MOST_REFERENCES 16

static const char *const part_kinds[] = { "text", "raw", "url", "data" };

void
message_fault_clear (struct message_fault *f)
{
    free (f->text);
    free (f->media_type);
    *f = (struct message_fault){ .part_index = -1 };
}

void
message_clear (struct message *m)
{
    free (m->message_id);
    free (m->task_id);
    free (m->context_id);
    free (m->text);
    free (m->part_kinds);
    strv_free (&m->references);
    *m = (struct message){ 0 };
}

static bool
refuse (struct message_fault *fault, const char *text)
{
    *fault = (struct message_fault){ .code = -32602, .text = x_strdup (text), .part_index = -1 };
    return false;
}

/* --- parts --- */

static bool
has_one_kind (const json_t *part)
{
    int count = 0;
    for (size_t i = 0; i < ARRAY_LEN (part_kinds); i++)
        count += json_object_get (part, part_kinds[i]) != NULL;
    return json_is_object (part) && count == 1;
}

static bool
has_string_fields (const json_t *part)
{
    static const char *const fields[] = { "text", "raw", "url", "mediaType", "filename" };
    for (size_t i = 0; i < ARRAY_LEN (fields); i++) {
        const json_t *field = json_object_get (part, fields[i]);
        if (field && ! json_is_string (field))
            return false;
    }
    return true;
}

static bool
check_parts (const json_t *parts, struct message_fault *fault)
{
    size_t i;
    json_t *part;
    if (! json_is_array (parts) || json_array_size (parts) == 0)
        return refuse (fault, "Invalid params: message.parts must be a non-empty array");
    json_array_foreach (parts, i, part) if (! has_one_kind (part)) return refuse (
        fault, "Invalid params: each part of message.parts must hold exactly "
               "one of text, raw, url and data");
    json_array_foreach (parts, i, part) if (! has_string_fields (part)) return refuse (
        fault, "Invalid params: text, raw, url, mediaType and filename of a "
               "part must be strings");
    return true;
}

/* A Markdown code fence: more backticks than any run in the body, at least three. */
static void
message_append_fence (struct buf *out, const char *info, const char *body)
{
    size_t longest = 0, run = 0;
    for (const char *p = body; *p; p++) {
        run = *p == '`' ? run + 1 : 0;
        if (run > longest)
            longest = run;
    }
    size_t ticks = longest + 1 > 3 ? longest + 1 : 3;
    for (size_t i = 0; i < ticks; i++)
        buf_putc (out, '`');
    buf_printf (out, "%s\n%s\n", info, body);
    for (size_t i = 0; i < ticks; i++)
        buf_putc (out, '`');
}

static void
append_info (struct buf *info, const char *name, const char *value)
{
    if (! value)
        return;
    buf_printf (info, " %s=", name);
    for (; *value; value++)
        buf_putc (info,
                  isspace ((unsigned char)*value) || *value == '`' || *value == '=' ? '_' : *value);
}

/* Texts are C strings from here on: a NUL would hide the rest. */
static void
append_text (struct buf *out, const char *text, size_t len)
{
    for (const char *nul; (nul = memchr (text, '\0', len));) {
        size_t before = (size_t)(nul - text);
        buf_append (out, text, before);
        buf_puts (out, "\xef\xbf\xbd");
        text += before + 1;
        len -= before + 1;
    }
    buf_append (out, text, len);
}

static void
append_part (struct buf *out, const json_t *part)
{
    const json_t *text = json_object_get (part, "text");
    if (text) {
        append_text (out, json_string_value (text), json_string_length (text));
        return;
    }
    _cleanup_buf_ struct buf info = { 0 };
    buf_puts (&info, "data");
    append_info (&info, "media-type", json_get_string (part, "mediaType"));
    append_info (&info, "filename", json_get_string (part, "filename"));
    _cleanup_free_ char *body = json_pretty (json_object_get (part, "data"), JSON_TEXT_SORTED);
    message_append_fence (out, info.data, body);
}

static char *
joined_parts (const json_t *parts)
{
    struct buf out = { 0 };
    size_t i;
    json_t *part;
    json_array_foreach (parts, i, part)
    {
        if (i)
            buf_putc (&out, '\n');
        append_part (&out, part);
    }
    return buf_steal (&out);
}

static bool
refuse_files (const json_t *parts, struct message_fault *fault)
{
    size_t i;
    json_t *part;
    json_array_foreach (parts, i, part)
    {
        if (! json_object_get (part, "raw") && ! json_object_get (part, "url"))
            continue;
        const char *media_type = json_get_string (part, "mediaType");
        *fault = (struct message_fault){
            .code = -32005,
            .text = x_strdup ("Content type not supported: this capsule takes text and data parts"),
            .part_index = (int)i,
            .media_type = media_type ? x_strdup (media_type) : NULL,
        };
        return false;
    }
    return true;
}

/* --- the rest of a message --- */

static bool
read_ids (const json_t *message, struct message *out, struct message_fault *fault)
{
    const json_t *task_id = json_object_get (message, "taskId");
    const json_t *context_id = json_object_get (message, "contextId");
    if (task_id && ! json_is_string (task_id))
        return refuse (fault, "Invalid params: message.taskId must be a string");
    if (context_id && ! json_is_string (context_id))
        return refuse (fault, "Invalid params: message.contextId must be a string");
    if (task_id && json_string_length (task_id))
        out->task_id = x_strdup (json_string_value (task_id));
    if (context_id && json_string_length (context_id))
        out->context_id = x_strdup (json_string_value (context_id));
    return true;
}

static bool
read_references (const json_t *message, struct message *out, struct message_fault *fault)
{
    const json_t *list = json_object_get (message, "referenceTaskIds");
    size_t i;
    json_t *id;
    if (! list)
        return true;
    if (! json_is_array (list))
        return refuse (fault, "Invalid params: message.referenceTaskIds must be an array");
    json_array_foreach (list, i, id)
    {
        if (! json_is_string (id) || json_string_length (id) == 0)
            return refuse (fault,
                           "Invalid params: message.referenceTaskIds must hold non-empty strings");
        if (! strv_contains (&out->references, json_string_value (id)))
            strv_push (&out->references, json_string_value (id));
    }
    if (out->references.len > MOST_REFERENCES)
        return refuse (fault, "Invalid params: message.referenceTaskIds names more than 16 tasks");
    return true;
}

static bool
read_metadata (const json_t *message, struct message *out, struct message_fault *fault)
{
    const json_t *metadata = json_object_get (message, "metadata");
    const json_t *ours =
        json_is_object (metadata) ? json_object_get (metadata, CARD_DOOR_URI) : NULL;
    if (! ours)
        return true;
    if (! json_is_object (ours))
        return refuse (fault, "Invalid params: the door extension's metadata must be an object");
    const json_t *forget = json_object_get (ours, "forgetSession");
    if (forget && ! json_is_boolean (forget))
        return refuse (fault, "Invalid params: forgetSession must be a boolean");
    out->uses_door_metadata = true;
    out->forgets_session = json_is_true (forget);
    if (out->forgets_session && out->task_id)
        return refuse (fault, "Invalid params: forgetSession cannot be used with a taskId");
    return true;
}

static bool
read_configuration (const json_t *params, struct message *out, bool *wants_push,
                    struct message_fault *fault)
{
    const json_t *configuration = json_object_get (params, "configuration");
    *wants_push = false;
    if (! json_is_object (configuration))
        return true;
    const json_t *at_once = json_object_get (configuration, "returnImmediately");
    if (at_once && ! json_is_null (at_once) && ! json_is_boolean (at_once))
        return refuse (fault, "Invalid params: configuration.returnImmediately must be a boolean");
    out->returns_immediately = json_is_true (at_once);
    const json_t *push = json_object_get (configuration, "taskPushNotificationConfig");
    *wants_push = push && ! json_is_null (push);
    return true;
}

bool
message_read (const json_t *params, bool has_harness, struct message *out,
              struct message_fault *fault)
{
    *out = (struct message){ 0 };
    const json_t *message = json_object_get (params, "message");
    if (! json_is_object (message))
        return refuse (fault, "Invalid params: message must be an object");
    const char *message_id = json_get_string (message, "messageId");
    if (! message_id || ! *message_id)
        return refuse (fault, "Invalid params: message.messageId must be a non-empty string");
    if (! str_eq (json_get_string (message, "role"), "ROLE_USER"))
        return refuse (fault, "Invalid params: message.role must be ROLE_USER");
    const json_t *parts = json_object_get (message, "parts");
    bool wants_push;
    bool is_good = check_parts (parts, fault) && read_ids (message, out, fault) &&
                   read_references (message, out, fault) && read_metadata (message, out, fault) &&
                   read_configuration (params, out, &wants_push, fault) &&
                   refuse_files (parts, fault);
    if (! is_good)
        return false;
    if (wants_push) {
        *fault = (struct message_fault){
            .code = -32003,
            .text = x_strdup ("Push notifications are not supported"),
            .part_index = -1,
        };
        return false;
    }
    if (out->forgets_session && ! has_harness)
        return refuse (fault, "Invalid params: forgetSession needs a capsule whose "
                              "inference.transport is process");
    out->message_id = x_strdup (message_id);
    out->text = joined_parts (parts);
    size_t i;
    json_t *part;
    _cleanup_buf_ struct buf kinds = { 0 };
    json_array_foreach (parts, i, part)
        buf_putc (&kinds, json_object_get (part, "text") ? 't' : 'd');
    out->part_kinds = buf_steal (&kinds);
    json_array_foreach (parts, i, part) if (! out->data) out->data = json_object_get (part, "data");
    return true;
}

/* --- references --- */

void
message_append_reference (struct buf *out, const char *id, const struct task_view *view)
{
    buf_printf (out, "\n- %s: %s", id,
                view ? task_state_word (view->state) : "not a task this capsule holds");
    if (! view)
        return;
    if (view->state == TASK_COMPLETED && view->response && *view->response) {
        buf_putc (out, '\n');
        message_append_fence (out, "response", view->response);
    } else if (view->state != TASK_COMPLETED && task_state_is_terminal (view->state) &&
               view->status_text) {
        buf_puts (out, ": ");
        for (const char *p = view->status_text; *p; p++)
            buf_putc (out, *p == '\r' || *p == '\n' ? ' ' : *p);
    }
}
