/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages of a stdio transport: one a line, split at 0x0A and nowhere else.
 *
 * Always true: what is held is bounded; a line that is longer is dropped whole, its end found, and
 * its loss told once. A carriage return before the line feed is no part of a line.
 */
#pragma once

#include "base/buf.h"

struct mcp_lines {
    struct buf held; /* read, not taken yet */
    size_t at;       /* where the next line begins */
    size_t scanned;  /* no line feed before here */
    size_t limit;    /* bytes of a line */
    bool is_skipping;
};

enum mcp_line {
    MCP_LINE_NONE, /* feed more */
    MCP_LINE,
    MCP_LINE_TOO_LONG, /* one was dropped */
};

void mcp_lines_feed (struct mcp_lines *l, const char *data, size_t len);
/* The next line; it is valid until more is fed. Blank lines are passed over. */
enum mcp_line mcp_lines_next (struct mcp_lines *l, const char **line, size_t *len);
void mcp_lines_clear (struct mcp_lines *l);
