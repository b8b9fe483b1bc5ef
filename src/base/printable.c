/* SPDX-License-Identifier: Apache-2.0 */
#include "base/printable.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

/* Right-to-left marks, embeddings, overrides and isolates, and the two separators that break a line
 * for some readers only. */
static bool
turns_order (unsigned point)
{
    return point == 0x61c || point == 0x200e || point == 0x200f ||
           (point >= 0x2028 && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
}

static unsigned
point_of (const unsigned char *c, size_t len)
{
    static const unsigned char lead[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    unsigned point = c[0] & lead[len];
    for (size_t i = 1; i < len; i++)
        point = point << 6 | (c[i] & 0x3f);
    return point;
}

static bool
is_control (unsigned point)
{
    return point < 0x20 || (point >= 0x7f && point < 0xa0);
}

static bool
is_plain (const char *text, size_t len, bool is_line)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x7f || (c < 0x20 && (is_line || (c != '\n' && c != '\t'))))
            return false;
    }
    return true;
}

static void
put_control (struct buf *out, unsigned point, enum printable_style style)
{
    if (style == PRINTABLE_BLANK)
        buf_putc (out, ' ');
    else if (style == PRINTABLE_LINE && (point == '\n' || point == '\t'))
        buf_puts (out, point == '\n' ? "\\n" : "\\t");
    else if (style == PRINTABLE_JSON && point >= 0x7f)
        buf_printf (out, "\\u%04x", point);
    else
        buf_printf (out, "\\x%02x", point);
}

void
buf_append_printable (struct buf *out, const char *text, size_t len, enum printable_style style)
{
    bool is_line = style == PRINTABLE_BLANK || style == PRINTABLE_LINE;
    if (is_plain (text, len, is_line)) {
        buf_append (out, text, len);
        return;
    }
    for (size_t i = 0, n; i < len; i += n) {
        const unsigned char *c = (const unsigned char *)text + i;
        n = utf8_char_len (c, len - i);
        unsigned point = n ? point_of (c, n) : 0;
        if (n == 0) {
            buf_printf (out, "\\x%02x", c[0]);
            n = 1;
        } else if (is_control (point) && (is_line || (point != '\n' && point != '\t'))) {
            put_control (out, point, style);
        } else if (turns_order (point)) {
            buf_printf (out, "\\u%04x", point);
        } else {
            buf_append (out, text + i, n);
        }
    }
}

bool
text_is_printable (const char *text, enum text_kind kind)
{
    size_t len = strlen (text);
    for (size_t i = 0, n; i < len; i += n) {
        const unsigned char *c = (const unsigned char *)text + i;
        n = utf8_char_len (c, len - i);
        if (kind != TEXT_NAME && n == 1 && strchr ("\t\n\r", *c))
            continue;
        if (! n || is_control (point_of (c, n)))
            return false;
        if (kind != TEXT_PROSE && turns_order (point_of (c, n)))
            return false;
    }
    return true;
}

bool
text_is_direction_mark (const char *c)
{
    size_t n = utf8_char_len ((const unsigned char *)c, strlen (c));
    return n && turns_order (point_of ((const unsigned char *)c, n));
}

/* --- signs --- */

bool
locale_lacks_utf8 (void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    for (size_t i = 0; i < ARRAY_LEN (names); i++) {
        const char *value = getenv (names[i]);
        if (value && *value)
            return ! strcasestr (value, "utf-8") && ! strcasestr (value, "utf8");
    }
    return false;
}

static const struct {
    const char *sign; /* three bytes, or two */
    char plain;
} signs[] = {
    { "\u2192", '>' }, { "\u2190", '<' }, { "\u2191", '^' },  { "\u2193", 'v' }, { "\u2500", '-' },
    { "\u2501", '-' }, { "\u2502", '|' }, { "\u2503", '|' },  { "\u251c", '|' }, { "\u2514", '`' },
    { "\u2510", '.' }, { "\u250c", '.' }, { "\u2518", '\'' }, { "\u256d", '.' }, { "\u2570", '`' },
    { "\u2022", '*' }, { "\u25cf", '*' }, { "\u25cb", 'o' },  { "\u2713", '+' }, { "\u2714", '+' },
    { "\u2717", 'x' }, { "\u2718", 'x' }, { "\u2026", '.' },  { "\u2014", '-' }, { "\u2013", '-' },
    { "\u00b7", '.' }, { "\u00d7", 'x' }, { "\u2248", '~' },  { "\u2265", '>' }, { "\u2264", '<' },
    { "\u21b3", '`' }, { "\u23f5", '>' }, { "\u25b8", '>' },  { "\u2588", '#' }, { "\u2591", '.' },
    { "\u2212", '-' }, { "\u25a0", '#' }, { "\u26a0", '!' },  { "\u201c", '"' }, { "\u201d", '"' },
    { "\u203a", '>' }, { "\u2039", '<' },
};

void
buf_append_ascii_signs (struct buf *out, const char *text, size_t len)
{
    for (size_t at = 0; at < len;) {
        size_t sign_len = 0;
        for (size_t i = 0; (unsigned char)text[at] >= 0xc2 && i < ARRAY_LEN (signs); i++) {
            size_t n = strlen (signs[i].sign);
            if (n > len - at || memcmp (text + at, signs[i].sign, n) != 0)
                continue;
            buf_putc (out, signs[i].plain);
            sign_len = n;
            break;
        }
        if (! sign_len)
            buf_putc (out, text[at]);
        at += sign_len ? sign_len : 1;
    }
}
