/* SPDX-License-Identifier: Apache-2.0 */
#include "door/planes/trace_plane.h"

#include "base/alloc.h"
#include "door/planes/plane_answer.h"
#include "net/server/http_exchange.h"

#include <fcntl.h>
#include <string.h>

#define PART_BYTES ((size_t)1 << 20)

static off_t
first_byte (const struct http_exchange *x)
{
    const char *from = strstr (http_exchange_target (x), "?from=");
    uint64_t at = from ? strtoull (from + strlen ("?from="), NULL, 10) : 0;
    return at < (uint64_t)INT64_MAX - PART_BYTES ? (off_t)at : 0;
}

/* Up to the last whole line; a line longer than a part goes in pieces. */
static size_t
whole_lines (const char *text, size_t len)
{
    const char *end = len ? memrchr (text, '\n', len) : NULL;
    if (end)
        return (size_t)(end - text) + 1;
    return len == PART_BYTES ? len : 0;
}

void
trace_plane_serve (struct fs_root *records, struct http_exchange *x)
{
    _cleanup_plane_headers_ struct plane_headers h = { 0 };
    if (! plane_is_get (x)) {
        plane_header (&h, "Allow", "GET");
        plane_refuse (x, &h, 405, "method_not_allowed", "The trace is read with GET.");
        return;
    }
    off_t from = first_byte (x);
    _cleanup_buf_ struct buf part = { 0 };
    _cleanup_close_ int fd = openat (fs_root_fd (records), "trace.jsonl",
                                     O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : pread (fd, buf_reserve (&part, PART_BYTES), PART_BYTES, from);
    if (n < 0) {
        plane_refuse (x, &h, 404, "not_found", "This session has no trace that can be read.");
        return;
    }
    size_t len = whole_lines (part.data, (size_t)n);
    plane_header (&h, "content-type", "application/x-ndjson");
    plane_header_number (&h, TRACE_PLANE_NEXT, (int64_t)from + (int64_t)len);
    http_reply (x, 200, h.items, h.len, part.data, len);
}
