/* SPDX-License-Identifier: Apache-2.0
 *
 * Text tables.
 */
#include "cli/line/text_table.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/printable.h"

#include <string.h>

void
text_table_column (struct text_table *t, const char *title)
{
    strv_push (&t->columns, title);
}

/* A cell is one line, whatever its text holds. */
void
text_table_add (struct text_table *t, const char *cell)
{
    struct buf copy = { 0 };
    buf_append_printable (&copy, cell, strlen (cell), PRINTABLE_BLANK);
    strv_take (&t->cells, copy.data ? buf_steal (&copy) : x_strdup (""));
}

bool
text_table_is_empty (const struct text_table *t)
{
    return t->cells.len == 0;
}

/* Characters, not bytes: a dash of three bytes is one column wide. */
static size_t
width_of (const char *s)
{
    size_t width = 0;
    for (; *s; s++)
        width += ((unsigned char)*s & 0xc0) != 0x80;
    return width;
}

static void
put_row (struct buf *out, char *const *cells, size_t count, const size_t *widths)
{
    for (size_t i = 0; i < count; i++) {
        buf_puts (out, cells[i]);
        for (size_t pad = width_of (cells[i]); i + 1 < count && pad < widths[i] + 2; pad++)
            buf_putc (out, ' ');
    }
    buf_putc (out, '\n');
}

void
text_table_print (const struct text_table *t)
{
    size_t count = t->columns.len;
    _cleanup_free_ size_t *widths = x_new_array (size_t, count);
    for (size_t i = 0; i < count; i++)
        widths[i] = width_of (t->columns.items[i]);
    for (size_t i = 0; i < t->cells.len; i++)
        if (width_of (t->cells.items[i]) > widths[i % count])
            widths[i % count] = width_of (t->cells.items[i]);
    _cleanup_buf_ struct buf out = { 0 };
    put_row (&out, t->columns.items, count, widths);
    for (size_t i = 0; i + count <= t->cells.len; i += count)
        put_row (&out, t->cells.items + i, count, widths);
    out_write (out.data, out.len);
}

void
text_table_clear (struct text_table *t)
{
    strv_free (&t->columns);
    strv_free (&t->cells);
}
