/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/lines.h"

#include <string.h>

void
mcp_lines_feed (struct mcp_lines *l, const char *data, size_t len)
{
    if (l->at) {
        memmove (l->held.data, l->held.data + l->at, l->held.len - l->at);
        buf_truncate (&l->held, l->held.len - l->at);
        l->scanned -= l->at;
        l->at = 0;
    }
    buf_append (&l->held, data, len);
}

static bool
is_blank (const char *line, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (! memchr (" \t\r", line[i], 3))
            return false;
    return true;
}

/* What is held of a line that is too long already: dropped, its end is looked for. */
static void
drop_beginning (struct mcp_lines *l)
{
    l->is_skipping = true;
    l->at = l->scanned = l->held.len;
}

enum mcp_line
mcp_lines_next (struct mcp_lines *l, const char **line, size_t *len)
{
    for (;;) {
        size_t left = l->held.len - l->scanned;
        char *end = left ? memchr (l->held.data + l->scanned, '\n', left) : NULL;
        if (! end) {
            l->scanned = l->held.len;
            if (l->is_skipping || l->held.len - l->at > l->limit)
                drop_beginning (l);
            return MCP_LINE_NONE;
        }
        const char *from = l->held.data + l->at;
        size_t count = (size_t)(end - from);
        l->at = l->scanned = (size_t)(end - l->held.data) + 1;
        if (l->is_skipping || count > l->limit) {
            l->is_skipping = false;
            return MCP_LINE_TOO_LONG;
        }
        if (count && from[count - 1] == '\r')
            count--;
        if (is_blank (from, count))
            continue;
        *line = from;
        *len = count;
        return MCP_LINE;
    }
}

void
mcp_lines_clear (struct mcp_lines *l)
{
    buf_free (&l->held);
    l->at = l->scanned = 0;
}
