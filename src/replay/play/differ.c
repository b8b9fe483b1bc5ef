/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/play/differ.h"

#include "base/alloc.h"
#include "base/buf.h"

#include <string.h>

#define AROUND 60

size_t
differ_offset (const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t at = 0, end = a_len < b_len ? a_len : b_len;
    while (at < end && a[at] == b[at])
        at++;
    return at;
}

/* --- pointers --- */

static void
append_key (struct buf *out, const char *key)
{
    buf_putc (out, '/');
    for (const char *c = key; *c; c++)
        if (*c == '~' || *c == '/')
            buf_puts (out, *c == '~' ? "~0" : "~1");
        else
            buf_putc (out, *c);
}

static bool descend (const json_t *a, const json_t *b, struct buf *out);

static bool
descend_array (const json_t *a, const json_t *b, struct buf *out)
{
    size_t a_len = json_array_size (a), b_len = json_array_size (b);
    for (size_t i = 0; i < a_len || i < b_len; i++) {
        const json_t *left = json_array_get (a, i), *right = json_array_get (b, i);
        if (left && right && json_equal (left, right))
            continue;
        buf_printf (out, "/%zu", i);
        return left && right ? descend (left, right, out) : true;
    }
    return false;
}

static void
take_keys (const json_t *o, struct strv *keys)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)o, key, value) if (! strv_contains (keys, key))
        strv_push (keys, key);
}

static bool
descend_object (const json_t *a, const json_t *b, struct buf *out)
{
    _cleanup_strv_ struct strv keys = { 0 };
    take_keys (a, &keys);
    take_keys (b, &keys);
    strv_sort (&keys);
    for (size_t i = 0; i < keys.len; i++) {
        const json_t *left = json_object_get (a, keys.items[i]);
        const json_t *right = json_object_get (b, keys.items[i]);
        if (left && right && json_equal (left, right))
            continue;
        append_key (out, keys.items[i]);
        return left && right ? descend (left, right, out) : true;
    }
    return false;
}

static bool
descend (const json_t *a, const json_t *b, struct buf *out)
{
    if (json_is_array (a) && json_is_array (b))
        return descend_array (a, b, out);
    if (json_is_object (a) && json_is_object (b))
        return descend_object (a, b, out);
    return ! json_equal (a, b);
}

static char *
pointer_of (const json_t *a, const json_t *b)
{
    struct buf out = { 0 };
    descend (a, b, &out);
    return buf_steal (&out);
}

char *
differ_pointer_text (const char *a, size_t a_len, const char *b, size_t b_len)
{
    json_t *left = json_loadb (a, a_len, JSON_DECODE_ANY, NULL);
    json_t *right = json_loadb (b, b_len, JSON_DECODE_ANY, NULL);
    char *pointer = left && right ? pointer_of (left, right) : x_strdup ("");
    json_decref (left);
    json_decref (right);
    return pointer;
}

/* --- what stands there --- */

static bool
is_inside (const char *text, size_t at)
{
    return ((unsigned char)text[at] & 0xc0) == 0x80;
}

char *
differ_excerpt (const char *text, size_t len, size_t offset)
{
    size_t at = offset < len ? offset : len;
    size_t from = at > AROUND ? at - AROUND : 0, to = len - at > AROUND ? at + AROUND : len;
    while (from > 0 && is_inside (text, from))
        from--;
    while (to < len && is_inside (text, to))
        to++;
    return x_asprintf ("%s%.*s%s", from ? "..." : "", (int)(to - from), text + from,
                       to < len ? "..." : "");
}
