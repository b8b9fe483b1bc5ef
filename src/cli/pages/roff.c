/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/pages/roff.h"

void
roff_put (struct buf *out, const char *text)
{
    for (const char *c = text; *c; c++) {
        bool begins_line = out->len && out->data[out->len - 1] == '\n';
        if (begins_line && (*c == '.' || *c == '\''))
            buf_puts (out, "\\&");
        if (*c == '\\')
            buf_puts (out, "\\e");
        else if (*c == '-')
            buf_puts (out, "\\-");
        else
            buf_putc (out, *c);
    }
}

void
roff_line (struct buf *out, const char *request, const char *text)
{
    buf_printf (out, ".%s ", request);
    roff_put (out, text);
    buf_putc (out, '\n');
}
