/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include "base/alloc.h"

#include <stdint.h>
#include <string.h>

#define BLANKS " \t\n\v\f\r"

bool
text_is_blank (const char *text)
{
    return ! text || text[strspn (text, BLANKS)] == '\0';
}

const char *
text_inner (const char *text, size_t *len)
{
    text += strspn (text, BLANKS);
    *len = strlen (text);
    while (*len && strchr (BLANKS, text[*len - 1]))
        (*len)--;
    return text;
}

char *
text_trimmed (const char *text)
{
    size_t len;
    const char *inner = text_inner (text, &len);
    return x_strndup (inner, len);
}

/* --- as files have them --- */

#define REPLACEMENT 0xfffdu

static void
put_utf8 (struct buf *out, uint32_t c)
{
    if (c < 0x80) {
        buf_putc (out, (char)c);
        return;
    }
    int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char lead[] = { 0, 0xc0, 0xe0, 0xf0 };
    buf_putc (out, (char)(lead[more] | c >> (6 * more)));
    while (more--)
        buf_putc (out, (char)(0x80 | (c >> (6 * more) & 0x3f)));
}

static uint32_t
unit_at (const unsigned char *at, bool is_big)
{
    return is_big ? (uint32_t)at[0] << 8 | at[1] : (uint32_t)at[1] << 8 | at[0];
}

static void
from_utf16 (struct buf *text, size_t start, bool is_big)
{
    struct buf out = { 0 };
    const unsigned char *bytes = (const unsigned char *)text->data;
    for (size_t i = start; i + 1 < text->len; i += 2) {
        uint32_t c = unit_at (bytes + i, is_big);
        bool is_first_half = c >= 0xd800 && c < 0xdc00;
        uint32_t next = is_first_half && i + 3 < text->len ? unit_at (bytes + i + 2, is_big) : 0;
        if (next >= 0xdc00 && next < 0xe000) {
            c = 0x10000 + ((c - 0xd800) << 10) + (next - 0xdc00);
            i += 2;
        } else if (c >= 0xd800 && c < 0xe000) {
            c = REPLACEMENT;
        }
        put_utf8 (&out, c);
    }
    if ((text->len - start) % 2)
        put_utf8 (&out, REPLACEMENT);
    buf_free (text);
    *text = out;
}

void
text_form_normalise (struct buf *text)
{
    const unsigned char *b = (const unsigned char *)text->data;
    if (text->len >= 3 && memcmp (b, "\xef\xbb\xbf", 3) == 0) {
        memmove (text->data, text->data + 3, text->len - 3);
        buf_truncate (text, text->len - 3);
    } else if (text->len >= 2 && b[0] == 0xff && b[1] == 0xfe) {
        from_utf16 (text, 2, false);
    } else if (text->len >= 2 && b[0] == 0xfe && b[1] == 0xff) {
        from_utf16 (text, 2, true);
    } else if (text->len >= 4 && text->len % 2 == 0 && (b[0] == 0) != (b[1] == 0) &&
               (b[2] == 0) != (b[3] == 0)) {
        from_utf16 (text, 0, b[0] == 0);
    }
}
