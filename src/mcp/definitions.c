/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/definitions.h"

#include "base/alloc.h"

#include <string.h>
#include <strings.h>

#define NAME_MAX_LEN    128
#define SCHEMA_DEPTH    48
#define LONG_TEXT_BYTES 1024

const char *const mcp_pinned_members[] = { "name",        "title",        "description",
                                           "inputSchema", "outputSchema", "annotations",
                                           NULL };

/* --- pins --- */

/* What of a tool is pinned. A new object. */
static json_t *
pinned_of (const json_t *tool)
{
    json_t *o = json_object ();
    for (size_t i = 0; mcp_pinned_members[i]; i++) {
        json_t *value = json_object_get (tool, mcp_pinned_members[i]);
        if (value && ! json_is_null (value))
            json_object_set (o, mcp_pinned_members[i], value);
    }
    return o;
}

void
mcp_definition_hash (const json_t *tool, char out[SHA256_HEX_LEN + 1])
{
    _cleanup_json_ json_t *pinned = pinned_of (tool);
    _cleanup_free_ char *text = json_text (pinned, JSON_TEXT_SORTED);
    sha256_hex (text, strlen (text), out);
}

const json_t *
mcp_definition_find (const json_t *tools, const char *name)
{
    size_t i;
    json_t *tool;
    json_array_foreach (tools, i,
                        tool) if (str_eq (json_get_string (tool, "name"), name)) return tool;
    return NULL;
}

const char *
mcp_definition_change (const json_t *pinned, const json_t *live)
{
    const json_t *now = mcp_definition_find (live, json_get_string (pinned, "name"));
    if (! now)
        return "gone";
    for (size_t i = 0; mcp_pinned_members[i]; i++) {
        const json_t *was = json_object_get (pinned, mcp_pinned_members[i]);
        const json_t *is = json_object_get (now, mcp_pinned_members[i]);
        is = json_is_null (is) ? NULL : is;
        if (! was != ! is || (was && ! json_equal (was, is)))
            return mcp_pinned_members[i];
    }
    return NULL;
}

static int
compare_names (const void *a, const void *b)
{
    const json_t *const *x = a, *const *y = b;
    return strcmp (json_get_string (*x, "name"), json_get_string (*y, "name"));
}

json_t *
mcp_definitions_sorted (const json_t *tools)
{
    size_t count = json_array_size (tools);
    _cleanup_free_ json_t **items = x_new_array (json_t *, count + 1);
    json_t *sorted = json_array ();
    for (size_t i = 0; i < count; i++)
        items[i] = pinned_of (json_array_get (tools, i));
    qsort (items, count, sizeof *items, compare_names);
    for (size_t i = 0; i < count; i++)
        json_array_append_new (sorted, items[i]);
    return sorted;
}

/* --- faults --- */

static bool
is_name (const char *name)
{
    size_t len = name ? strlen (name) : 0;
    return len > 0 && len <= NAME_MAX_LEN &&
           strspn (name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-/") ==
               len;
}

/* False below a reference that leaves the document, or too deep. */
static bool
is_schema_local (const json_t *value, unsigned depth)
{
    const char *key;
    json_t *member;
    size_t i;
    if (depth > SCHEMA_DEPTH)
        return false;
    json_object_foreach ((json_t *)(uintptr_t)value, key, member)
    {
        const char *to = strcmp (key, "$ref") == 0 ? json_string_value (member) : NULL;
        if ((to && to[0] != '#') || ! is_schema_local (member, depth + 1))
            return false;
    }
    json_array_foreach (value, i, member) if (! is_schema_local (member, depth + 1)) return false;
    return true;
}

char *
mcp_definition_fault (const json_t *tool)
{
    const char *name = json_get_string (tool, "name");
    const json_t *input = json_object_get (tool, "inputSchema");
    const json_t *output = json_object_get (tool, "outputSchema");
    if (! is_name (name))
        return x_asprintf ("the tool name \"%.40s\" is none: 1 to 128 of A-Z a-z 0-9 _ . - /",
                           name ? name : "");
    _cleanup_free_ char *text = json_text (tool, JSON_TEXT_SORTED);
    if (strlen (text) > MCP_DEFINITION_MAX)
        return x_asprintf ("%s: its definition has %zu bytes, the most is %zu", name, strlen (text),
                           MCP_DEFINITION_MAX);
    if (! json_is_object (input) || ! str_eq (json_get_string (input, "type"), "object"))
        return x_asprintf ("%s: its inputSchema is not of type object", name);
    if (output && ! json_is_null (output) && ! json_is_object (output))
        return x_asprintf ("%s: its outputSchema is no object", name);
    if (! is_schema_local (input, 0) || ! is_schema_local (output, 0))
        return x_asprintf ("%s: a schema refers outside itself or is nested too deep", name);
    return NULL;
}

/* --- what nobody sees --- */

static const struct {
    unsigned from, to;
} hidden[] = {
    { 0x00AD, 0x00AD }, { 0x061C, 0x061C },   { 0x180E, 0x180E },   { 0x200B, 0x200F },
    { 0x202A, 0x202E }, { 0x2060, 0x206F },   { 0xFE00, 0xFE0E },   { 0xFEFF, 0xFEFF },
    { 0xFFF9, 0xFFFB }, { 0xE0000, 0xE01EF }, { 0x1D173, 0x1D17A },
};

static unsigned
code_point (const unsigned char *s, size_t len)
{
    unsigned c = len == 1 ? s[0] : len == 2 ? s[0] & 0x1fu : len == 3 ? s[0] & 0x0fu : s[0] & 0x07u;
    for (size_t i = 1; i < len; i++)
        c = c << 6 | (s[i] & 0x3fu);
    return c;
}

static bool
is_hidden (unsigned c)
{
    for (size_t i = 0; i < ARRAY_LEN (hidden); i++)
        if (c >= hidden[i].from && c <= hidden[i].to)
            return true;
    return (c < 0x20 && c != '\n' && c != '\t' && c != '\r') || c == 0x7f ||
           (c >= 0x80 && c < 0xa0);
}

char *
mcp_text_shown (const char *text)
{
    struct buf out = { 0 };
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        size_t len = utf8_char_len (s, strlen ((const char *)s));
        if (! len || is_hidden (code_point (s, len)))
            buf_puts (&out, "\xEF\xBF\xBD");
        else
            buf_append (&out, s, len);
        s += len ? len : 1;
    }
    return buf_steal (&out);
}

static bool
hides_something (const char *text)
{
    _cleanup_free_ char *shown = mcp_text_shown (text);
    return strcmp (shown, text) != 0;
}

/* --- findings --- */

static bool
has_word (const char *text, const char *word)
{
    size_t len = strlen (word);
    for (const char *at = text; (at = strcasestr (at, word)); at++) {
        bool begins =
            at == text || ! strchr ("abcdefghijklmnopqrstuvwxyz0123456789_-", at[-1] | 0x20);
        bool ends =
            ! at[len] || ! strchr ("abcdefghijklmnopqrstuvwxyz0123456789_-", at[len] | 0x20);
        if (begins && ends)
            return true;
    }
    return false;
}

static const struct {
    const char *text, *finding;
} suspicious[] = {
    { "<!--", "an HTML comment" },
    { "ignore previous", "\"ignore previous\"" },
    { "ignore all previous", "\"ignore all previous\"" },
    { "ignore the above", "\"ignore the above\"" },
    { "do not tell the user", "\"do not tell the user\"" },
    { "do not mention", "\"do not mention\"" },
    { "<important>", "an <IMPORTANT> mark" },
    { "system prompt", "the system prompt" },
    { "untrusted", "the mark of a fence" },
    { "-----BEGIN", "a key block" },
};

static void
find_in_text (const char *name, const char *where, const char *text, struct strv *out)
{
    if (hides_something (text))
        strv_printf (out, "%s: %s holds hidden characters", name, where);
    for (size_t i = 0; i < ARRAY_LEN (suspicious); i++)
        if (strcasestr (text, suspicious[i].text))
            strv_printf (out, "%s: %s holds %s", name, where, suspicious[i].finding);
    if (strlen (text) > LONG_TEXT_BYTES)
        strv_printf (out, "%s: %s has %zu bytes", name, where, strlen (text));
}

/* Every text below a value: a description deep in a schema is read like any other. */
static void
find_in_value (const char *name, const char *where, const json_t *value, struct strv *out)
{
    const char *key;
    json_t *member;
    size_t i;
    if (json_is_string (value))
        find_in_text (name, where, json_string_value (value), out);
    json_object_foreach ((json_t *)(uintptr_t)value, key, member)
    {
        if (hides_something (key))
            strv_printf (out, "%s: a name in %s holds hidden characters", name, where);
        find_in_value (name, where, member, out);
    }
    json_array_foreach (value, i, member) find_in_value (name, where, member, out);
}

void
mcp_definition_findings (const json_t *tool, const json_t *all, struct strv *out)
{
    const char *name = json_get_string (tool, "name");
    const char *description = json_get_string (tool, "description");
    size_t i;
    json_t *other;
    for (size_t m = 1; mcp_pinned_members[m]; m++)
        find_in_value (name, mcp_pinned_members[m], json_object_get (tool, mcp_pinned_members[m]),
                       out);
    json_array_foreach (all, i, other)
    {
        const char *its = json_get_string (other, "name");
        if (description && its && strlen (its) > 3 && strcmp (its, name) != 0 &&
            has_word (description, its))
            strv_printf (out, "%s: description names the tool %s", name, its);
    }
}
