/* SPDX-License-Identifier: Apache-2.0 */
#include "base/printable.h"

#include "base/alloc.h"

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
    else if (style == PRINTABLE_JSON && point >= 0x7f)
        buf_printf (out, "\\u%04x", point);
    else
        buf_printf (out, "\\x%02x", point);
}

void
buf_append_printable (struct buf *out, const char *text, size_t len, enum printable_style style)
{
    if (is_plain (text, len, style == PRINTABLE_BLANK)) {
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
        } else if (is_control (point) &&
                   (style == PRINTABLE_BLANK || (point != '\n' && point != '\t'))) {
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
