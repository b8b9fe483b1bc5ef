/* SPDX-License-Identifier: Apache-2.0
 *
 * The reader of server-sent events (murmur_sse.h). Line ends may be any of the three, a line may
 * come in any number of pieces, a byte-order mark may stand before the first.
 */
#include "murmur_sse.h"
#include "murmur_internal.h"

static void
sse_dispatch (struct mur_sse *sse)
{
    if (sse->has_data) {
        mur_text_add (&sse->data, "", 0);
        mur_text_add (&sse->event, "", 0);
        sse->take (sse->context, sse->data.data, sse->data.len);
    }
    sse->data.len = sse->event.len = 0;
    sse->has_data = false;
}

/* The value of a line of this field, or NULL. */
static const char *
field_value (const char *field, const char *line, size_t len, size_t *value_len)
{
    const char *colon = memchr (line, ':', len);
    size_t name_len = colon != NULL ? (size_t)(colon - line) : len;
    if (name_len != strlen (field) || memcmp (line, field, name_len) != 0)
        return NULL;
    size_t from = colon != NULL ? name_len + 1 : len;
    if (from < len && line[from] == ' ')
        from++;
    *value_len = len - from;
    return line + from;
}

static void
take_data (struct mur_sse *sse, const char *value, size_t len)
{
    if (sse->has_data)
        mur_text_puts (&sse->data, "\n");
    if (sse->keeps_bytes)
        mur_text_add (&sse->data, value, len);
    else
        mur_text_utf8 (&sse->data, value, len);
    sse->has_data = true;
}

static void
sse_line (struct mur_sse *sse)
{
    const char *line = sse->line.data != NULL ? sse->line.data : "";
    size_t len = sse->line.len, value_len = 0;
    if (! sse->is_started && len >= 3 && memcmp (line, "\xef\xbb\xbf", 3) == 0)
        line += 3, len -= 3;
    sse->is_started = true;
    sse->line.len = 0;
    if (len == 0) {
        sse_dispatch (sse);
        return;
    }
    const char *value = field_value ("data", line, len, &value_len);
    if (value != NULL) {
        take_data (sse, value, value_len);
        return;
    }
    value = field_value ("event", line, len, &value_len);
    if (value == NULL)
        return;
    sse->event.len = 0;
    mur_text_utf8 (&sse->event, value, value_len);
}

void
mur_sse_feed (struct mur_sse *sse, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len;) {
        if (sse->is_after_cr && bytes[i] == '\n') {
            sse->is_after_cr = false;
            i++;
            continue;
        }
        sse->is_after_cr = false;
        size_t from = i;
        while (i < len && bytes[i] != '\r' && bytes[i] != '\n')
            i++;
        mur_text_add (&sse->line, bytes + from, i - from);
        if (i == len)
            break;
        sse->is_after_cr = bytes[i++] == '\r';
        sse_line (sse);
    }
}

void
mur_sse_end (struct mur_sse *sse)
{
    if (sse->line.len > 0)
        sse_line (sse);
    sse_dispatch (sse);
    mur_text_free (&sse->line);
    mur_text_free (&sse->data);
    mur_text_free (&sse->event);
}
