/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines a person types, or that come from a pipe.
 */
#pragma once

#include "base/buf.h"

enum line_end {
    LINE_READ,
    LINE_OVER,        /* the end of input */
    LINE_INTERRUPTED, /* the descriptor of signals is readable */
};

struct line_reader {
    int fd, signals_fd; /* signals_fd -1: none */
    bool is_over;
    struct buf waiting; /* read; what stands before <at> was handed out */
    size_t at;
};

/* Hands out the next line in <line>, without its end. A line that ends with a backslash goes on in
 * the next. */
enum line_end line_reader_next (struct line_reader *r, struct buf *line);
/* Drops what was read and not handed out. */
void line_reader_clear (struct line_reader *r);
