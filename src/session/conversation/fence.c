/* SPDX-License-Identifier: Apache-2.0 */
#include "session/conversation/fence.h"

#include <string.h>
#include <strings.h>

static const char marker[] = "untrusted-content";
static const char infix[] = "!MURMUR-NEUTRALISED!";

/* True when a marker begins at s, which points at '<'. */
static bool
is_marker (const char *s, size_t left)
{
    s++, left--;
    if (left && *s == '/')
        s++, left--;
    return left >= sizeof (marker) - 1 && strncasecmp (s, marker, sizeof (marker) - 1) == 0;
}

void
fence_append (struct buf *out, const char *source, const char *content, size_t len)
{
    buf_reserve (out, len + strlen (source) + 64);
    buf_puts (out, "<untrusted-content source=");
    for (const char *s = source; *s; s++)
        buf_putc (out, *s == '>' ? '_' : *s == '\n' || *s == '\r' ? ' ' : *s);
    buf_puts (out, ">\n");
    const char *end = content + len;
    while (content < end) {
        const char *at = memchr (content, '<', (size_t)(end - content));
        if (! at) {
            buf_append (out, content, (size_t)(end - content));
            break;
        }
        buf_append (out, content, (size_t)(at - content) + 1);
        if (is_marker (at, (size_t)(end - at)))
            buf_puts (out, infix);
        content = at + 1;
    }
    buf_puts (out, "\n</untrusted-content>");
}
