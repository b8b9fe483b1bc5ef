/* SPDX-License-Identifier: Apache-2.0 */
#include "net/sse.h"

#include <stdlib.h>
#include <string.h>

void
sse_append (struct buf *out, uint64_t id, const char *json, size_t len)
{
    if (id)
        buf_printf (out, "id: %llu\n", (unsigned long long)id);
    buf_puts (out, "data: ");
    buf_append (out, json, len);
    buf_puts (out, "\n\n");
}

static const char *
field_value (const struct buf *line, const char *name)
{
    size_t len = strlen (name);
    if (line->len < len || strncmp (line->data, name, len) != 0)
        return NULL;
    const char *value = line->data + len;
    if (*value == '\0')
        return value;
    if (*value != ':')
        return NULL;
    value++;
    return *value == ' ' ? value + 1 : value;
}

/* One complete line: a field, a comment, or the blank one that ends an event. */
static bool
take_line (struct sse_parser *p, sse_event_fn *fn, void *ctx)
{
    if (p->line.len == 0) {
        bool goes_on = true;
        if (p->id.len) {
            buf_truncate (&p->last_id, 0);
            buf_puts (&p->last_id, p->id.data);
        }
        if (p->has_data)
            goes_on = fn (ctx, p->id.data ? p->id.data : "", p->data.data ? p->data.data : "",
                          p->data.len);
        buf_truncate (&p->data, 0);
        buf_truncate (&p->id, 0);
        p->has_data = false;
        return goes_on;
    }
    const char *value = field_value (&p->line, "data");
    if (value) {
        if (p->has_data)
            buf_putc (&p->data, '\n');
        buf_puts (&p->data, value);
        p->has_data = true;
    } else if ((value = field_value (&p->line, "id"))) {
        buf_truncate (&p->id, 0);
        buf_puts (&p->id, value);
    } else if ((value = field_value (&p->line, "retry")) && *value && strlen (value) < 10 &&
               value[strspn (value, "0123456789")] == '\0') {
        p->retry_ms = strtoull (value, NULL, 10);
    }
    return true;
}

bool
sse_feed (struct sse_parser *p, const char *bytes, size_t len, sse_event_fn *fn, void *ctx)
{
    size_t limit = p->limit_bytes ? p->limit_bytes : (size_t)16 << 20;
    const char *end = bytes + len;
    while (bytes < end) {
        if (p->after_cr && *bytes == '\n') {
            p->after_cr = false;
            bytes++;
            continue;
        }
        p->after_cr = false;
        const char *stop = bytes;
        while (stop < end && *stop != '\n' && *stop != '\r')
            stop++;
        if (p->line.len + p->data.len + (size_t)(stop - bytes) > limit)
            return false;
        buf_append (&p->line, bytes, (size_t)(stop - bytes));
        if (stop == end)
            return true;
        p->after_cr = *stop == '\r';
        bytes = stop + 1;
        bool goes_on = take_line (p, fn, ctx);
        buf_truncate (&p->line, 0);
        if (! goes_on)
            return false;
    }
    return true;
}

void
sse_parser_free (struct sse_parser *p)
{
    buf_free (&p->line);
    buf_free (&p->id);
    buf_free (&p->last_id);
    buf_free (&p->data);
}
