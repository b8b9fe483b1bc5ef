/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/read/text.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/printable.h"

#include <stdarg.h>
#include <string.h>

#define HEADING_COLUMNS 49
#define LABEL_COLUMNS   12
#define KEPT_BYTES      ((size_t)64 * 1024)

/* Colours inside a report under way are single control bytes, so that its columns can be counted
 * and plain text stays plain. */
#define BOLD  "\001"
#define DIM   "\002"
#define GREEN "\003"
#define RED   "\004"
#define PLAIN "\005"

static const char *const sequences[] = {
    [1] = "\033[1m", [2] = "\033[2m", [3] = "\033[32m", [4] = "\033[31m", [5] = "\033[0m",
};

static void
render (const struct buf *text, bool use_colour, struct buf *out)
{
    for (size_t i = 0; i < text->len; i++) {
        unsigned char c = (unsigned char)text->data[i];
        if (c && c < ARRAY_LEN (sequences))
            buf_puts (out, use_colour ? sequences[c] : "");
        else
            buf_putc (out, (char)c);
    }
}

void
report_finish (struct report *r, bool use_colour, struct buf *out)
{
    render (&r->text, use_colour, out);
    buf_free (&r->text);
}

static void
hand_on (struct report *r)
{
    _cleanup_buf_ struct buf out = { 0 };
    render (&r->text, r->use_colour, &out);
    r->put (out.data ? out.data : "", out.len);
    buf_truncate (&r->text, 0);
}

void
report_end (struct report *r)
{
    hand_on (r);
    buf_free (&r->text);
}

#define OWN_LINE '\xff' /* a newline of a format while it is filled; in no text of UTF-8 */

/* Lines of the format stay lines, and one that came with a value is indented below it, so that no
 * name or answer begins a line of the report. Controls are blanks. */
static void
append_lines (struct buf *b, const char *text)
{
    static const char ends[] = { '\n', OWN_LINE, '\0' };
    for (size_t len; *text; text += len) {
        len = strcspn (text, ends);
        buf_append_printable (b, text, len, PRINTABLE_BLANK);
        if (! text[len])
            continue;
        bool is_indented = text[len] == OWN_LINE || ! strncmp (text + len + 1, "    ", 4) ||
                           ! text[len + 1] || text[len + 1] == '\n' || text[len + 1] == OWN_LINE;
        buf_puts (b, is_indented ? "\n" : "\n    ");
        len++;
    }
}

static void
append (struct report *r, const char *fmt, va_list ap)
{
    _cleanup_free_ char *own = x_strdup (fmt);
    for (char *c = own; (c = strchr (c, '\n'));)
        *c = OWN_LINE;
    _cleanup_free_ char *text = x_vasprintf (own, ap);
    append_lines (&r->text, text);
    if (r->put && r->text.len > KEPT_BYTES)
        hand_on (r);
}

void
report_rule (struct report *r, const char *title, size_t columns)
{
    buf_printf (&r->text, BOLD "── %s ", title);
    for (size_t used = strlen (title) + 4; used < columns; used++)
        buf_puts (&r->text, "─");
    buf_puts (&r->text, PLAIN "\n");
    r->is_started = true;
}

void
report_heading (struct report *r, const char *title)
{
    if (r->is_started)
        buf_putc (&r->text, '\n');
    report_rule (r, title, HEADING_COLUMNS);
}

void
report_label (struct report *r, const char *label)
{
    buf_printf (&r->text, DIM "%s:" PLAIN, label);
    size_t used = strlen (label) + 1;
    buf_printf (&r->text, "%*s", used < LABEL_COLUMNS ? (int)(LABEL_COLUMNS - used) : 1, "");
}

void
report_line (struct report *r, const char *label, const char *fmt, ...)
{
    report_label (r, label);
    va_list ap;
    va_start (ap, fmt);
    append (r, fmt, ap);
    va_end (ap);
    buf_putc (&r->text, '\n');
}

void
report_text (struct report *r, const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    append (r, fmt, ap);
    va_end (ap);
}

void
report_mark (struct report *r, bool is_good)
{
    buf_puts (&r->text, is_good ? GREEN "✓" PLAIN : RED "✗" PLAIN);
}

struct small_text
duration_text (uint64_t ms)
{
    struct small_text t;
    if (ms < 1000)
        snprintf (t.text, sizeof (t.text), "%lums", (unsigned long)ms);
    else
        snprintf (t.text, sizeof (t.text), "%.1fs", (double)ms / 1000);
    return t;
}

struct small_text
count_text (uint64_t n)
{
    char digits[24];
    int len = snprintf (digits, sizeof (digits), "%lu", (unsigned long)n);
    struct small_text t;
    size_t used = 0;
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            t.text[used++] = ',';
        t.text[used++] = digits[i];
    }
    t.text[used] = '\0';
    return t;
}

struct small_text
short_text (const char *text)
{
    struct small_text t;
    if (! text)
        return (struct small_text){ "—" };
    size_t len = strlen (text);
    snprintf (t.text, sizeof (t.text), "%.*s%s", (int)utf8_cut (text, len, 12), text,
              len > 12 ? "…" : "");
    return t;
}

struct small_text
time_text (uint64_t unix_ms)
{
    struct small_text t;
    clock_rfc3339 (unix_ms, t.text);
    return t;
}

const char *
member_text (const json_t *object, const char *key)
{
    const char *text = json_get_string (object, key);
    return text ? text : "—";
}

uint64_t
member_number (const json_t *object, const char *key)
{
    uint64_t value = 0;
    (void)json_get_u64 (object, key, &value);
    return value;
}

bool
member_has (const json_t *object, const char *key)
{
    const json_t *value = json_object_get (object, key);
    return value && ! json_is_null (value);
}

char *
member_list (const json_t *object, const char *key)
{
    struct buf b = { 0 };
    size_t i;
    const json_t *item;
    json_array_foreach (json_object_get (object, key), i, item) if (json_is_string (item))
        buf_printf (&b, "%s%s", b.len ? ", " : "", json_string_value (item));
    return buf_steal (&b);
}

char *
cut_text (const char *text, size_t limit)
{
    size_t bytes = 0;
    for (size_t n = 0; text[bytes] && n < limit; n++)
        do
            bytes++;
        while (((unsigned char)text[bytes] & 0xc0) == 0x80);
    struct buf b = { 0 };
    /* A report is lines: what would break one is shown as a blank. */
    buf_append_printable (&b, text, bytes, PRINTABLE_BLANK);
    if (text[bytes])
        buf_puts (&b, "…");
    return buf_steal (&b);
}

char *
member_json (const json_t *object, const char *key, size_t limit)
{
    const json_t *value = json_object_get (object, key);
    _cleanup_free_ char *text = value ? json_text (value, JSON_TEXT_ORDERED) : x_strdup ("—");
    return cut_text (text, limit);
}

const char *
text_behind_fence (const char *text)
{
    const char *end = str_starts (text, "<untrusted-content ") ? strchr (text, '\n') : NULL;
    return end ? end + 1 : text;
}
