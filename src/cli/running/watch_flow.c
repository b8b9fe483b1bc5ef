/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/running/watch_flow.h"

#include "cli/running/watch_text.h"

#include <string.h>

#define COLUMNS_UNKNOWN 80

static const char *const inks[] = {
    [INK_PLAIN] = "",        [INK_BOLD] = "\033[1m", [INK_DIM] = "\033[2m",
    [INK_GOOD] = "\033[32m", [INK_BAD] = "\033[31m", [INK_ASKING] = "\033[33m",
    [INK_CALL] = "\033[36m",
};

void
view_ink (struct watch_view *v, enum ink which)
{
    if (v->style.has_colour && *inks[which])
        buf_puts (v->out, inks[which]);
}

void
view_ink_end (struct watch_view *v, enum ink which)
{
    if (v->style.has_colour && *inks[which])
        buf_puts (v->out, "\033[0m");
}

void
view_put_inked (struct watch_view *v, enum ink which, const char *text)
{
    view_ink (v, which);
    buf_puts (v->out, text);
    view_ink_end (v, which);
}

/* --- flowing text --- */

#define FLOW_INDENT "  "

size_t
view_width (const struct watch_view *v)
{
    size_t width = v->style.width ? v->style.width () : 0;
    return width ? width : COLUMNS_UNKNOWN;
}

void
view_flow_begin (struct watch_view *v)
{
    buf_puts (v->out, FLOW_INDENT);
    v->column = strlen (FLOW_INDENT);
    v->blanks = 0;
}

void
view_flow_word (struct watch_view *v)
{
    if (! v->word.len)
        return;
    size_t width = view_width (v);
    size_t columns = text_columns (v->word.data, v->word.len);
    if (v->column > strlen (FLOW_INDENT) && v->column + v->blanks + columns >= width) {
        buf_putc (v->out, '\n');
        view_flow_begin (v);
    }
    for (size_t i = 0; i < v->blanks; i++)
        buf_putc (v->out, ' ');
    buf_append (v->out, v->word.data, v->word.len);
    v->column += v->blanks + columns;
    v->blanks = 0;
    buf_truncate (&v->word, 0);
}

void
view_flow_text (struct watch_view *v, const char *text)
{
    for (const char *c = text; *c; c += text_char_len (c)) {
        if (*c == '\n') {
            view_flow_word (v);
            buf_putc (v->out, '\n');
            view_flow_begin (v);
        } else if (*c == ' ' || *c == '\t') {
            view_flow_word (v);
            v->blanks += *c == ' ' ? 1 : 4;
        } else if (text_is_control (c))
            buf_puts (&v->word, "·");
        else
            buf_append (&v->word, c, text_char_len (c));
    }
}

void
view_break_flow (struct watch_view *v)
{
    if (v->flow == FLOW_CALL)
        buf_puts (v->out, "\r\033[K");
    else if (v->flow != FLOW_NONE) {
        enum ink last = v->flow == FLOW_THINKING && v->word.len ? INK_DIM : INK_PLAIN;
        view_ink (v, last);
        view_flow_word (v);
        view_ink_end (v, last);
        buf_putc (v->out, '\n');
    }
    v->flow = FLOW_NONE;
}
