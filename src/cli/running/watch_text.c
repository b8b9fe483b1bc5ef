/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/running/watch_text.h"

#include "base/alloc.h"
#include "base/printable.h"

#include <string.h>

#define ANSWER_COLUMNS 78

size_t
text_char_len (const char *c)
{
    unsigned char lead = (unsigned char)*c;
    size_t len = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    for (size_t i = 1; i < len; i++)
        if (((unsigned char)c[i] & 0xc0) != 0x80)
            return i;
    return len;
}

bool
text_is_control (const char *c)
{
    unsigned char a = (unsigned char)c[0];
    return a < 0x20 || a == 0x7f || (a == 0xc2 && (unsigned char)c[1] < 0xa0) ||
           text_is_direction_mark (c);
}

void
text_put_safe (struct buf *out, const char *text, const char *indent)
{
    for (const char *c = text; *c; c += text_char_len (c)) {
        if (*c == '\n')
            buf_printf (out, "\n%s", indent);
        else if (*c == '\t')
            buf_putc (out, '\t');
        else if (text_is_control (c))
            buf_puts (out, "·");
        else
            buf_append (out, c, text_char_len (c));
    }
}

char *
text_first_words (const char *text, size_t columns)
{
    struct buf line = { 0 };
    for (const char *start = text; *start;) {
        size_t len = strcspn (start, "\n");
        bool is_fence = len && (str_starts (start, "<untrusted-content") ||
                                str_starts (start, "</untrusted-content"));
        if (! is_fence && strspn (start, " \t\r") < len) {
            size_t shown = 0;
            for (const char *c = start; c < start + len && shown < columns;
                 c += text_char_len (c)) {
                if (text_is_control (c))
                    buf_putc (&line, ' ');
                else
                    buf_append (&line, c, text_char_len (c));
                shown++;
            }
            if (shown == columns)
                buf_puts (&line, "…");
            break;
        }
        start += len + (start[len] == '\n');
    }
    return buf_steal (&line);
}

size_t
text_columns (const char *word, size_t len)
{
    size_t columns = 0;
    for (size_t i = 0; i < len; i++)
        columns += ((unsigned char)word[i] & 0xc0) != 0x80;
    return columns;
}

/* One line of an answer, wrapped between words, each piece indented by two. */
static void
put_wrapped_line (struct buf *out, const char *line, size_t len)
{
    size_t column = 0, at = 0;
    while (at < len) {
        at += strspn (line + at, " \t\r");
        size_t word = 0;
        while (at + word < len && ! strchr (" \t\r", line[at + word]))
            word++;
        if (! word || at >= len)
            break;
        size_t columns = text_columns (line + at, word);
        if (column && column + 1 + columns > ANSWER_COLUMNS) {
            buf_putc (out, '\n');
            column = 0;
        }
        buf_puts (out, column ? " " : "  ");
        buf_append (out, line + at, word);
        column += columns + (column ? 1 : 0);
        at += word;
    }
    buf_putc (out, '\n');
}

void
text_put_wrapped (struct buf *out, const char *text)
{
    size_t len = strlen (text);
    while (len && (text[len - 1] == '\n' || text[len - 1] == '\r'))
        len--;
    for (size_t at = 0; at < len;) {
        size_t line = strcspn (text + at, "\n");
        if (at + line > len)
            line = len - at;
        put_wrapped_line (out, text + at, line);
        at += line + 1;
    }
}
