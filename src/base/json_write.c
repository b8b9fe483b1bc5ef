/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_write.h"

#include "base/alloc.h"
#include "base/json.h"

#include <math.h>
#include <string.h>

/* Bytes that may be copied as they are: everything but controls, the quote and the backslash. */
static bool
is_plain (unsigned char c)
{
    return c >= 0x20 && c != '"' && c != '\\';
}

static void
append_escape (struct buf *b, unsigned char c)
{
    static const char names[] = { ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f',
                                  ['\r'] = 'r', ['"'] = '"',  ['\\'] = '\\' };
    if (c < sizeof (names) && names[c]) {
        char text[2] = { '\\', names[c] };
        buf_append (b, text, 2);
    } else {
        buf_printf (b, "\\u%04x", c);
    }
}

/* Characters at which readers other than ours end a line: U+0085, U+2028, U+2029. The length in
 * UTF-8; 0 for anything else. */
static size_t
line_end_len (const char *s, size_t len)
{
    if (len >= 2 && memcmp (s, "\xc2\x85", 2) == 0)
        return 2;
    return len >= 3 && memcmp (s, "\xe2\x80", 2) == 0 && ((unsigned char)s[2] & 0xfe) == 0xa8 ? 3
                                                                                              : 0;
}

static void
append_valid (struct buf *b, const char *s, size_t len)
{
    size_t from = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)s[i];
        size_t end_len = c < 0x80 ? 0 : line_end_len (s + i, len - i);
        if (! end_len && is_plain (c))
            continue;
        buf_append (b, s + from, i - from);
        if (end_len)
            buf_printf (b, "\\u%04x",
                        end_len == 2 ? 0x85u : 0x2000u + ((unsigned char)s[i + 2] & 0x3f));
        else
            append_escape (b, c);
        i += end_len ? end_len - 1 : 0;
        from = i + 1;
    }
    buf_append (b, s + from, len - from);
}

void
json_append_string (struct buf *b, const char *s, size_t len)
{
    buf_reserve (b, len + 2);
    buf_putc (b, '"');
    if (utf8_is_valid (s, len)) {
        append_valid (b, s, len);
    } else {
        json_t *repaired = json_string_lossy (s, len);
        append_valid (b, json_string_value (repaired), json_string_length (repaired));
        json_decref (repaired);
    }
    buf_putc (b, '"');
}

static void
append_real (struct buf *b, double value)
{
    if (! isfinite (value)) {
        buf_puts (b, "null");
        return;
    }
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf (text, sizeof (text), "%.*g", digits, value);
        if (strtod (text, NULL) == value)
            break;
    }
    buf_puts (b, text);
    if (! strpbrk (text, ".e"))
        buf_puts (b, ".0");
}

struct member {
    const char *key;
    size_t key_len;
    const json_t *value;
};

static int
compare_members (const void *a, const void *b)
{
    const struct member *left = a, *right = b;
    size_t shorter = left->key_len < right->key_len ? left->key_len : right->key_len;
    int order = memcmp (left->key, right->key, shorter);
    if (order)
        return order;
    return left->key_len < right->key_len ? -1 : left->key_len > right->key_len;
}

static void
append_object (struct buf *b, const json_t *value, enum json_text how)
{
    struct member few[16];
    size_t size = json_object_size (value), len = 0;
    struct member *members = size > ARRAY_LEN (few) ? x_new_array (struct member, size) : few;
    json_t *object = (json_t *)(uintptr_t)value; /* Jansson's iterators are not const-correct */
    for (void *at = json_object_iter (object); at; at = json_object_iter_next (object, at))
        members[len++] = (struct member){ json_object_iter_key (at), json_object_iter_key_len (at),
                                          json_object_iter_value (at) };
    if (how == JSON_TEXT_SORTED && len > 1)
        qsort (members, len, sizeof (*members), compare_members);
    buf_putc (b, '{');
    for (size_t i = 0; i < len; i++) {
        if (i)
            buf_putc (b, ',');
        json_append_string (b, members[i].key, members[i].key_len);
        buf_putc (b, ':');
        json_append (b, members[i].value, how);
    }
    buf_putc (b, '}');
    if (members != few)
        free (members);
}

void
json_append (struct buf *b, const json_t *value, enum json_text how)
{
    switch (value ? json_typeof (value) : JSON_NULL) {
    case JSON_OBJECT:
        append_object (b, value, how);
        break;
    case JSON_ARRAY:
        buf_putc (b, '[');
        for (size_t i = 0; i < json_array_size (value); i++) {
            if (i)
                buf_putc (b, ',');
            json_append (b, json_array_get (value, i), how);
        }
        buf_putc (b, ']');
        break;
    case JSON_STRING:
        json_append_string (b, json_string_value (value), json_string_length (value));
        break;
    case JSON_INTEGER:
        buf_printf (b, "%" JSON_INTEGER_FORMAT, json_integer_value (value));
        break;
    case JSON_REAL:
        append_real (b, json_real_value (value));
        break;
    case JSON_TRUE:
        buf_puts (b, "true");
        break;
    case JSON_FALSE:
        buf_puts (b, "false");
        break;
    case JSON_NULL:
    default:
        buf_puts (b, "null");
        break;
    }
}

json_t *
json_string_lossy (const char *s, size_t len)
{
    json_t *value = json_stringn (s, len);
    if (value)
        return value;
    struct buf b = { 0 };
    for (size_t i = 0; i < len;) {
        size_t n = 1;
        while (n <= 4 && n <= len - i && ! utf8_is_valid (s + i, n))
            n++;
        if (n <= 4 && n <= len - i) {
            buf_append (&b, s + i, n);
            i += n;
        } else {
            buf_puts (&b, "\xef\xbf\xbd");
            i++;
        }
    }
    value = json_stringn (b.data ? b.data : "", b.len);
    buf_free (&b);
    return value;
}
