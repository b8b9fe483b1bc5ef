/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/text/merge_marks.h"

#include <string.h>

enum mark {
    MARK_NONE,
    MARK_OURS,   /* <<<<<<< */
    MARK_BASE,   /* ||||||| */
    MARK_THEIRS, /* ======= */
    MARK_END,    /* >>>>>>> */
};

static enum mark
mark_of (const char *line, size_t len)
{
    static const struct {
        const char *text;
        enum mark mark;
    } marks[] = { { "<<<<<<<", MARK_OURS },
                  { "|||||||", MARK_BASE },
                  { "=======", MARK_THEIRS },
                  { ">>>>>>>", MARK_END } };
    for (size_t i = 0; i < ARRAY_LEN (marks); i++)
        if (len >= 7 && memcmp (line, marks[i].text, 7) == 0 &&
            (len == 7 || strchr (" \r", line[7])))
            return marks[i].mark;
    return MARK_NONE;
}

size_t
merge_mark_line (const char *text, size_t len)
{
    size_t number = 1;
    for (size_t at = 0; at < len; number++) {
        const char *end = memchr (text + at, '\n', len - at);
        size_t line_len = end ? (size_t)(end - text) - at : len - at;
        enum mark mark = mark_of (text + at, line_len);
        if (mark != MARK_NONE && mark != MARK_THEIRS) /* which is a heading's underline elsewhere */
            return number;
        at += line_len + 1;
    }
    return 0;
}

void
merge_side_put (struct buf *out, const char *text, size_t len, enum merge_side side)
{
    enum mark wanted = side == MERGE_OURS ? MARK_OURS : MARK_THEIRS;
    enum mark now = MARK_NONE;
    for (size_t at = 0; at < len;) {
        const char *end = memchr (text + at, '\n', len - at);
        size_t line_len = end ? (size_t)(end - text) - at : len - at;
        enum mark mark = mark_of (text + at, line_len);
        if (mark != MARK_NONE)
            now = mark == MARK_END ? MARK_NONE : mark;
        else if (now == MARK_NONE || now == wanted)
            buf_append (out, text + at, line_len + (end ? 1 : 0));
        at += line_len + 1;
    }
}
