/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ui/ui_heads.h"

#include "base/alloc.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define HEAD_MOST ((size_t)1 << 20)
#define TAIL_MOST 8192 /* a session_end is a line of a few hundred bytes */

static int
open_trace (const char *path, struct stat *st)
{
    _cleanup_close_ int fd = open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    return fd >= 0 && fstat (fd, st) == 0 && S_ISREG (st->st_mode) ? steal_fd (&fd) : -1;
}

json_t *
ui_trace_first (const char *path)
{
    struct stat st;
    _cleanup_close_ int fd = open_trace (path, &st);
    _cleanup_buf_ struct buf line = { 0 };
    const char *stop = NULL;
    for (ssize_t n; fd >= 0 && ! stop && line.len < HEAD_MOST; line.len += (size_t)n) {
        char *piece = buf_reserve (&line, 16384);
        n = read (fd, piece, 16384);
        if (n <= 0)
            return NULL;
        stop = memchr (piece, '\n', (size_t)n);
    }
    return stop ? json_loadb (line.data, (size_t)(stop - line.data), 0, NULL) : NULL;
}

json_t *
ui_trace_end (const char *path)
{
    struct stat st;
    char tail[TAIL_MOST];
    _cleanup_close_ int fd = open_trace (path, &st);
    off_t from = fd >= 0 && st.st_size > TAIL_MOST ? st.st_size - TAIL_MOST : 0;
    ssize_t len = fd >= 0 ? pread (fd, tail, sizeof tail, from) : 0;
    if (len <= 1 || tail[len - 1] != '\n')
        return NULL;
    const char *line = memrchr (tail, '\n', (size_t)len - 1);
    line = line ? line + 1 : tail;
    if ((size_t)(tail + len - line) < 16 ||
        ! memmem (line, (size_t)(tail + len - line), "\"session_end\"", strlen ("\"session_end\"")))
        return NULL;
    json_t *event = json_loadb (line, (size_t)(tail + len - 1 - line), 0, NULL);
    if (str_eq (json_get_string (event, "event_type"), "session_end"))
        return event;
    json_decref (event);
    return NULL;
}
