/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/result.h"

#include "base/alloc.h"
#include "base/digest.h"
#include "base/json_write.h"

#include <string.h>

static void
next_part (struct buf *out)
{
    if (out->len)
        buf_putc (out, '\n');
}

static const char *
or_else (const char *text, const char *otherwise)
{
    return text && *text ? text : otherwise;
}

static void
read_binary (const char *kind, const char *mime, const char *data, const char *uri,
             const struct mcp_result_reader *r, struct buf *out)
{
    size_t len = 0;
    _cleanup_free_ unsigned char *bytes = data ? base64_decode (data, strlen (data), &len) : NULL;
    _cleanup_free_ char *where = bytes ? r->keep (r->ctx, mime, bytes, len) : NULL;
    next_part (out);
    if (! bytes)
        buf_printf (out, "[%s %s: its bytes are not base64]", kind, mime);
    else
        buf_printf (out, "[%s %s, %zu bytes%s%s, %s%s]", kind, mime, len, uri ? ", " : "",
                    uri ? uri : "", where ? "kept as " : "could not be kept", where ? where : "");
}

static void
read_link (const json_t *part, struct buf *out)
{
    const char *name = json_get_string (part, "name"), *mime = json_get_string (part, "mimeType");
    const char *words = json_get_string (part, "description");
    next_part (out);
    buf_printf (out, "[link %s%s%s%s%s%s%s]", or_else (json_get_string (part, "uri"), "?"),
                name ? ", " : "", name ? name : "", mime ? ", " : "", mime ? mime : "",
                words ? ": " : "", words ? words : "");
}

static void
read_resource (const json_t *part, const struct mcp_result_reader *r, struct buf *out)
{
    const json_t *resource = json_object_get (part, "resource");
    const char *uri = or_else (json_get_string (resource, "uri"), "?");
    const json_t *text = json_object_get (resource, "text");
    if (json_is_string (text)) {
        next_part (out);
        buf_printf (out, "[resource %s]\n", uri);
        buf_append (out, json_string_value (text), json_string_length (text));
        return;
    }
    read_binary ("resource", or_else (json_get_string (resource, "mimeType"), "of no type"),
                 json_get_string (resource, "blob"), uri, r, out);
}

static void
read_part (const json_t *part, const struct mcp_result_reader *r, struct buf *out)
{
    const char *type = or_else (json_get_string (part, "type"), "?");
    const json_t *text = json_object_get (part, "text");
    if (strcmp (type, "text") == 0 && json_is_string (text)) {
        next_part (out);
        buf_append (out, json_string_value (text), json_string_length (text));
    } else if (strcmp (type, "image") == 0 || strcmp (type, "audio") == 0) {
        read_binary (type, or_else (json_get_string (part, "mimeType"), "of no type"),
                     json_get_string (part, "data"), NULL, r, out);
    } else if (strcmp (type, "resource_link") == 0) {
        read_link (part, out);
    } else if (strcmp (type, "resource") == 0) {
        read_resource (part, r, out);
    } else {
        next_part (out);
        buf_printf (out, "[content of an unknown type: %.40s]", type);
    }
}

#define BASE64_SHOWN 1024 /* characters of a text that may be nothing but base64 */

static bool
is_base64 (const char *text, size_t len)
{
    return len > BASE64_SHOWN && ! strchr (text, ' ') &&
           strspn (text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\r\n") ==
               len;
}

/* A copy in which encoded bytes are counted, not shown. */
static json_t *
without_base64 (const json_t *value)
{
    const char *key, *text = json_string_value (value);
    json_t *member;
    size_t i;
    if (text && is_base64 (text, json_string_length (value))) {
        _cleanup_free_ char *words =
            x_asprintf ("[%zu characters of base64]", json_string_length (value));
        return json_string (words);
    }
    if (! json_is_object (value) && ! json_is_array (value))
        return json_incref ((json_t *)(uintptr_t)value);
    json_t *copy = json_is_object (value) ? json_object () : json_array ();
    json_object_foreach ((json_t *)(uintptr_t)value, key, member)
        json_object_set_new (copy, key, without_base64 (member));
    json_array_foreach (value, i, member) json_array_append_new (copy, without_base64 (member));
    return copy;
}

/* Some text of the content is this very value. */
static bool
says_the_same (const json_t *content, const json_t *structure)
{
    size_t i;
    json_t *part;
    json_array_foreach (content, i, part)
    {
        const json_t *text = json_object_get (part, "text");
        if (! json_is_string (text))
            continue;
        _cleanup_json_ json_t *value =
            json_loadb (json_string_value (text), json_string_length (text),
                        JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        if (value && json_equal (value, structure))
            return true;
    }
    return false;
}

bool
mcp_result_read (const json_t *result, const struct mcp_result_reader *r, struct buf *out)
{
    const json_t *content = json_object_get (result, "content");
    const json_t *structure = json_object_get (result, "structuredContent");
    bool has_failed = json_is_true (json_object_get (result, "isError"));
    bool has_structure = structure && ! json_is_null (structure);
    size_t i;
    json_t *part;
    json_array_foreach (content, i, part) read_part (part, r, out);
    /* What failed told why in its content; its structure need not even fit its schema. */
    if (has_structure && ! (has_failed && out->len) && ! says_the_same (content, structure)) {
        next_part (out);
        _cleanup_json_ json_t *shown = without_base64 (structure);
        json_append (out, shown, JSON_TEXT_ORDERED);
    }
    if (! out->len)
        buf_puts (out, "(the tool returned no data)");
    return ! has_failed;
}

/* --- handed on --- */

static const struct part_kind {
    const char *type, *since; /* the revision that brought it */
    const char *members[3];   /* texts that must be there */
} part_kinds[] = {
    { "text", "2024-11-05", { "text" } },
    { "image", "2024-11-05", { "data", "mimeType" } },
    { "audio", "2025-03-26", { "data", "mimeType" } },
    { "resource_link", "2025-06-18", { "uri", "name" } },
    { "resource", "2024-11-05", { NULL } },
};

static bool
is_whole (const json_t *part, const struct part_kind *kind)
{
    for (size_t i = 0; kind->members[i]; i++)
        if (! json_get_string (part, kind->members[i]))
            return false;
    const json_t *resource = json_object_get (part, "resource");
    return strcmp (kind->type, "resource") != 0 ||
           (json_get_string (resource, "uri") &&
            (json_get_string (resource, "text") || json_get_string (resource, "blob")));
}

static bool
is_passable (const json_t *part, const struct mcp_revision *revision)
{
    const char *type = json_get_string (part, "type");
    for (size_t i = 0; type && i < ARRAY_LEN (part_kinds); i++)
        if (strcmp (part_kinds[i].type, type) == 0)
            return strcmp (revision->name, part_kinds[i].since) >= 0 &&
                   is_whole (part, &part_kinds[i]);
    return false;
}

json_t *
mcp_result_passed (const json_t *result, const struct mcp_revision *revision)
{
    json_t *content = json_object_get (result, "content");
    json_t *structure = json_object_get (result, "structuredContent");
    size_t i;
    json_t *part;
    if (! json_is_array (content))
        return NULL;
    json_array_foreach (content, i, part) if (! is_passable (part, revision)) return NULL;
    json_t *passed = json_object ();
    json_object_set (passed, "content", content);
    if (structure && ! json_is_null (structure))
        json_object_set (passed, "structuredContent", structure);
    json_set_bool (passed, "isError", json_is_true (json_object_get (result, "isError")));
    return passed;
}
