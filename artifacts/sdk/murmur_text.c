/* SPDX-License-Identifier: Apache-2.0
 *
 * Growing text, UTF-8, JSON out (murmur_sdk.h says what each function does). It needs no host: the
 * same source is compiled for the build machine by its tests.
 *
 * Always true: what mur_text_json makes is well-formed UTF-8, so it may cross a component boundary.
 */
#include "murmur_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- Text --- */

void
mur_text_add (struct mur_text *text, const char *bytes, size_t len)
{
    if (text->len + len + 1 > text->capacity) {
        size_t capacity = text->capacity < 64 ? 64 : text->capacity;
        while (capacity < text->len + len + 1)
            capacity *= 2;
        text->data = must (realloc (text->data, capacity));
        text->capacity = capacity;
    }
    if (len > 0)
        memcpy (text->data + text->len, bytes, len);
    text->len += len;
    text->data[text->len] = '\0';
}

void
mur_text_puts (struct mur_text *text, const char *string)
{
    mur_text_add (text, string, strlen (string));
}

void
mur_text_vprintf (struct mur_text *text, const char *format, va_list arguments)
{
    va_list again;
    va_copy (again, arguments);
    int needed = vsnprintf (NULL, 0, format, again);
    va_end (again);
    if (needed < 0)
        return;
    char *line = must (malloc ((size_t)needed + 1));
    vsnprintf (line, (size_t)needed + 1, format, arguments);
    mur_text_add (text, line, (size_t)needed);
    free (line);
}

void
mur_text_printf (struct mur_text *text, const char *format, ...)
{
    va_list arguments;
    va_start (arguments, format);
    mur_text_vprintf (text, format, arguments);
    va_end (arguments);
}

void
mur_text_free (struct mur_text *text)
{
    free (text->data);
    *text = (struct mur_text){ 0 };
}

char *
mur_format (const char *format, ...)
{
    struct mur_text text = { 0 };
    va_list arguments;
    va_start (arguments, format);
    mur_text_vprintf (&text, format, arguments);
    va_end (arguments);
    return text.data != NULL ? text.data : copy_bytes ("", 0);
}

/* --- UTF-8 --- */

size_t
utf8_sequence (const unsigned char *bytes, size_t len)
{
    static const struct {
        unsigned char first, last, second_min, second_max;
        size_t length;
    } forms[] = {
        { 0x00, 0x7f, 0, 0, 1 },       { 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
        { 0xe1, 0xec, 0x80, 0xbf, 3 }, { 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
        { 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (bytes[0] < forms[i].first || bytes[0] > forms[i].last)
            continue;
        if (forms[i].length > len)
            return 0;
        if (forms[i].length > 1 &&
            (bytes[1] < forms[i].second_min || bytes[1] > forms[i].second_max))
            return 0;
        for (size_t k = 2; k < forms[i].length; k++)
            if ((bytes[k] & 0xc0) != 0x80)
                return 0;
        return forms[i].length;
    }
    return 0;
}

bool
mur_utf8_valid (const char *bytes, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t step = utf8_sequence ((const unsigned char *)bytes + i, len - i);
        if (step == 0)
            return false;
        i += step;
    }
    return true;
}

size_t
mur_utf8_prefix (const char *bytes, size_t len, size_t limit)
{
    if (len <= limit)
        return len;
    size_t end = limit;
    while (end > 0 && ((unsigned char)bytes[end] & 0xc0) == 0x80)
        end--;
    return end;
}

void
mur_text_json_bytes (struct mur_text *text, const char *bytes, size_t len)
{
    static const char named[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    mur_text_add (text, "\"", 1);
    for (size_t i = 0; i < len;) {
        size_t step = utf8_sequence ((const unsigned char *)bytes + i, len - i);
        const char *name = NULL;
        for (const char *pair = named; *pair != '\0' && name == NULL; pair += 2)
            if (bytes[i] == *pair)
                name = pair + 1;
        if (step == 0)
            mur_text_puts (text, "\\ufffd");
        else if (name != NULL)
            mur_text_printf (text, "\\%c", *name);
        else if ((unsigned char)bytes[i] < 0x20)
            mur_text_printf (text, "\\u%04x", (unsigned)bytes[i]);
        else
            mur_text_add (text, bytes + i, step);
        i += step == 0 ? 1 : step;
    }
    mur_text_add (text, "\"", 1);
}

void
mur_text_json (struct mur_text *text, const char *string)
{
    mur_text_json_bytes (text, string, strlen (string));
}

char *
put_utf8 (char *to, uint32_t code)
{
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        *to++ = (char)(0xe0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    } else {
        *to++ = (char)(0xf0 | code >> 18);
        *to++ = (char)(0x80 | (code >> 12 & 0x3f));
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    }
    return to;
}

static bool
is_character (uint32_t code)
{
    return code != 0 && code < 0x110000 && (code < 0xd800 || code >= 0xe000);
}

void
mur_text_character (struct mur_text *text, uint32_t code)
{
    char bytes[4];
    char *end = put_utf8 (bytes, is_character (code) ? code : 0xfffd);
    mur_text_add (text, bytes, (size_t)(end - bytes));
}

void
mur_text_utf8 (struct mur_text *text, const char *bytes, size_t len)
{
    for (size_t i = 0, from = 0; i <= len; i++) {
        size_t step = i < len ? utf8_sequence ((const unsigned char *)bytes + i, len - i) : 0;
        if (step > 0) {
            i += step - 1;
            continue;
        }
        mur_text_add (text, bytes + from, i - from);
        if (i < len)
            mur_text_puts (text, "\xef\xbf\xbd");
        from = i + 1;
    }
}

void
text_add_escaped (struct mur_text *text, const char *bytes, size_t len)
{
    for (size_t i = 0, from = 0; i <= len; i++) {
        size_t step = i < len ? utf8_sequence ((const unsigned char *)bytes + i, len - i) : 0;
        if (step > 0) {
            i += step - 1;
            continue;
        }
        mur_text_add (text, bytes + from, i - from);
        if (i < len)
            mur_text_printf (text, "\\udc%02x", (unsigned)(unsigned char)bytes[i]);
        from = i + 1;
    }
}

/* --- Text that comes in pieces --- */

/* The half of a surrogate pair at `at`, in the three bytes that UTF-8 forbids, or 0. */
static unsigned
half_at (const char *at, size_t len)
{
    const unsigned char *b = (const unsigned char *)at;
    if (len < 3 || b[0] != 0xed || b[1] < 0xa0 || b[1] > 0xbf || (b[2] & 0xc0) != 0x80)
        return 0;
    return 0xd000u | (b[1] & 0x3fu) << 6 | (b[2] & 0x3fu);
}

/* Halves that meet become their character, escaped bytes the bytes they were, other halves U+FFFD;
 * a first half at the very end is left out. Returns how much was taken. */
static size_t
join_halves (const char *from, size_t len, struct mur_text *to)
{
    size_t i = 0;
    while (i < len) {
        unsigned half = half_at (from + i, len - i);
        unsigned next = half >= 0xd800 && half < 0xdc00 ? half_at (from + i + 3, len - i - 3) : 0;
        if (half == 0) {
            mur_text_add (to, from + i++, 1);
            continue;
        }
        if (next >= 0xdc00) {
            mur_text_character (to, 0x10000 + ((half - 0xd800) << 10) + (next - 0xdc00));
            i += 6;
            continue;
        }
        if (half < 0xdc00 && i + 3 == len)
            return i;
        if (half >= 0xdc80 && half <= 0xdcff)
            mur_text_add (to, (const char[]){ (char)(half & 0xff) }, 1);
        else
            mur_text_character (to, 0xfffd);
        i += 3;
    }
    return i;
}

/* Length of a sequence at the end that more bytes could complete. */
static size_t
open_tail (const char *bytes, size_t len)
{
    static const unsigned char fills[] = { 0x80, 0x90, 0xa0 };
    for (size_t tail = len < 3 ? len : 3; tail > 0; tail--)
        for (size_t i = 0; i < sizeof fills; i++) {
            unsigned char whole[4] = { 0, fills[i], fills[i], fills[i] };
            memcpy (whole, bytes + len - tail, tail);
            if (tail < sizeof whole && utf8_sequence (whole, sizeof whole) > tail)
                return tail;
        }
    return 0;
}

void
text_join (struct mur_text *pending, const char *piece, size_t len, struct mur_text *to)
{
    struct mur_text bytes = { 0 };
    mur_text_add (pending, piece, len);
    size_t taken = join_halves (pending->data, pending->len, &bytes);
    size_t tail = taken == pending->len ? open_tail (bytes.data, bytes.len) : 0;
    mur_text_utf8 (to, bytes.data, bytes.len - tail);
    struct mur_text rest = { 0 };
    mur_text_add (&rest, tail > 0 ? bytes.data + bytes.len - tail : pending->data + taken,
                  tail > 0 ? tail : pending->len - taken);
    mur_text_free (pending);
    mur_text_free (&bytes);
    *pending = rest;
}

/* --- JSON out --- */

void
mur_text_comma (struct mur_text *text)
{
    if (text->len > 0 && strchr ("{[:,", text->data[text->len - 1]) == NULL)
        mur_text_puts (text, ",");
}

void
mur_text_key (struct mur_text *text, const char *key)
{
    mur_text_comma (text);
    mur_text_json (text, key);
    mur_text_puts (text, ":");
}

void
mur_text_string (struct mur_text *text, const char *key, const char *string)
{
    if (string == NULL)
        return;
    mur_text_key (text, key);
    mur_text_json (text, string);
}

void
mur_text_node (struct mur_text *text, const char *key, const struct mur_json *json, mur_node node)
{
    size_t len;
    const char *raw = mur_json_raw (json, node, &len);
    if (len == 0)
        return;
    if (key != NULL)
        mur_text_key (text, key);
    mur_text_add (text, raw, len);
}
