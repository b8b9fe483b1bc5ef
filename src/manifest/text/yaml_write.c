/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/text/yaml_write.h"

#include "base/alloc.h"
#include "manifest/text/yaml_tree.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

/* Words and shapes a 1.1 reader takes for something else. */
static bool
is_ambiguous (const char *text)
{
    static const char *const words[] = { "y",     "n",    "yes", "no", "on",  "off", "true",
                                         "false", "null", "<<",  "=",  "---", "..." };
    for (size_t i = 0; i < ARRAY_LEN (words); i++)
        if (strcasecmp (text, words[i]) == 0)
            return true;
    const char *p = text + strspn (text, "+-");
    if (! isdigit ((unsigned char)*p) && *p != '.')
        return false;
    /* Octal, sexagesimal, digit groups, dates: anything made of these alone and starting like a
     * number. */
    size_t number_like = strspn (p, "0123456789_:");
    return p[number_like] == '\0' ||
           (number_like == 4 && p[4] == '-' && isdigit ((unsigned char)p[5]));
}

static bool
needs_quotes (const char *text, size_t len)
{
    if (yaml_resolve (text, len) != YAML_STRING || is_ambiguous (text))
        return true;
    if (strchr (",[]{}#&*!|>'\"%@`", text[0]) || isspace ((unsigned char)text[0]) ||
        isspace ((unsigned char)text[len - 1]) || text[len - 1] == ':')
        return true;
    if (strchr ("-?:", text[0]) && (text[1] == ' ' || text[1] == '\0'))
        return true;
    if (str_starts (text, "--- ") || str_starts (text, "... "))
        return true;
    return strstr (text, ": ") || strstr (text, " #");
}

static bool
needs_escapes (const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        bool is_c1 = c == 0xc2 && (unsigned char)text[i + 1] < 0xa0;
        if (c < 0x20 || c == 0x7f || is_c1)
            return true;
    }
    /* Line separators and the byte-order mark fold or vanish in some readers. */
    return strstr (text, "\xe2\x80\xa8") || strstr (text, "\xe2\x80\xa9") ||
           strstr (text, "\xef\xbb\xbf") || ! utf8_is_valid (text, len);
}

static void
put_single_quoted (struct buf *out, const char *text)
{
    buf_putc (out, '\'');
    for (; *text; text++) {
        if (*text == '\'')
            buf_putc (out, '\'');
        buf_putc (out, *text);
    }
    buf_putc (out, '\'');
}

/* Appends one character of <text> and returns the bytes it took; malformed bytes become U+FFFD. */
static size_t
put_escaped (struct buf *out, const char *text, size_t left)
{
    unsigned char c = (unsigned char)text[0];
    if (c == '\n' || c == '\t' || c == '\r') {
        buf_printf (out, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
    } else if (c == '"' || c == '\\') {
        buf_printf (out, "\\%c", c);
    } else if (c < 0x20 || c == 0x7f) {
        buf_printf (out, "\\x%02x", c);
    } else if (c < 0x80) {
        buf_putc (out, (char)c);
    } else {
        size_t len = 2;
        while (len <= 4 && (len > left || ! utf8_is_valid (text, len)))
            len++;
        if (len > 4) {
            buf_puts (out, "\\uFFFD");
            return 1;
        }
        uint32_t point = c & (0xffu >> (len + 1));
        for (size_t i = 1; i < len; i++)
            point = point << 6 | ((unsigned char)text[i] & 0x3f);
        if (point < 0xa0 || point == 0x2028 || point == 0x2029 || point == 0xfeff)
            buf_printf (out, "\\u%04X", point);
        else
            buf_append (out, text, len);
        return len;
    }
    return 1;
}

static void
put_double_quoted (struct buf *out, const char *text, size_t len)
{
    buf_putc (out, '"');
    for (size_t i = 0; i < len;)
        i += put_escaped (out, text + i, len - i);
    buf_putc (out, '"');
}

void
yaml_put_text (struct buf *out, const char *text)
{
    size_t len = strlen (text);
    if (needs_escapes (text, len))
        put_double_quoted (out, text, len);
    else if (needs_quotes (text, len))
        put_single_quoted (out, text);
    else
        buf_puts (out, text);
}

/* --- blocks --- */

void
yaml_writer_init (struct yaml_writer *w)
{
    *w = (struct yaml_writer){ .depth = 1 };
    w->level[0].is_empty = true;
}

/* Columns of a level: a list's elements stand under the key that holds it. */
static unsigned
indent_of (const struct yaml_writer *w)
{
    unsigned columns = 0;
    for (unsigned i = 1; i < w->depth; i++)
        if (! w->level[i].is_list || w->level[i - 1].is_list)
            columns += 2;
    return columns;
}

static void
put_indent (struct yaml_writer *w)
{
    for (unsigned i = indent_of (w); i; i--)
        buf_putc (&w->out, ' ');
}

/* A reader looks ahead 1024 characters for the colon of a key; a longer key is marked as one. */
#define SHORT_KEY_MAX 1000

static void
put_key (struct yaml_writer *w, const char *key)
{
    _cleanup_buf_ struct buf text = { 0 };
    yaml_put_text (&text, key);
    bool is_long = text.len > SHORT_KEY_MAX;
    if (is_long)
        buf_puts (&w->out, "? ");
    buf_append (&w->out, text.data, text.len);
    if (is_long) {
        buf_putc (&w->out, '\n');
        put_indent (w);
    }
    buf_putc (&w->out, ':');
}

/* Writes what leads to a value: line break, indentation, "key:" or "-". */
static void
put_lead (struct yaml_writer *w, const char *key)
{
    bool is_list = w->level[w->depth - 1].is_list;
    bool is_first = w->level[w->depth - 1].is_empty;
    bool after_dash = is_first && w->depth > 1 && w->level[w->depth - 2].is_list;
    w->level[w->depth - 1].is_empty = false;
    if (after_dash) {
        buf_putc (&w->out, ' '); /* "- key: value" on one line */
    } else {
        if (w->out.len && w->out.data[w->out.len - 1] != '\n')
            buf_putc (&w->out, '\n');
        put_indent (w);
    }
    if (is_list)
        buf_putc (&w->out, '-');
    else
        put_key (w, key);
}

static void
open_level (struct yaml_writer *w, const char *key, bool is_list)
{
    put_lead (w, key);
    if (w->depth == ARRAY_LEN (w->level))
        abort ();
    w->level[w->depth].is_list = is_list;
    w->level[w->depth].is_empty = true;
    w->depth++;
}

void
yaml_open_map (struct yaml_writer *w, const char *key)
{
    open_level (w, key, false);
}

void
yaml_open_list (struct yaml_writer *w, const char *key)
{
    open_level (w, key, true);
}

void
yaml_close (struct yaml_writer *w)
{
    w->depth--;
    if (w->level[w->depth].is_empty)
        buf_puts (&w->out, w->level[w->depth].is_list ? " []" : " {}");
    if (w->out.len && w->out.data[w->out.len - 1] != '\n')
        buf_putc (&w->out, '\n');
}

void
yaml_add_text (struct yaml_writer *w, const char *key, const char *text)
{
    if (! text)
        return;
    put_lead (w, key);
    buf_putc (&w->out, ' ');
    yaml_put_text (&w->out, text);
    buf_putc (&w->out, '\n');
}

static void
add_raw (struct yaml_writer *w, const char *key, const char *text)
{
    put_lead (w, key);
    buf_printf (&w->out, " %s\n", text);
}

void
yaml_add_u64 (struct yaml_writer *w, const char *key, uint64_t value)
{
    char text[24];
    snprintf (text, sizeof text, "%" PRIu64, value);
    add_raw (w, key, text);
}

void
yaml_add_bool (struct yaml_writer *w, const char *key, bool value)
{
    add_raw (w, key, value ? "true" : "false");
}

/* Too deep for block style: the rest in flow style, which JSON is. */
static void
add_flow (struct yaml_writer *w, const char *key, const struct yaml_node *n)
{
    _cleanup_buf_ struct buf json = { 0 };
    if (yaml_put_json (&json, n, E_IO_003, NULL))
        add_raw (w, key, json.data);
    else
        add_raw (w, key, "null");
}

void
yaml_add_node (struct yaml_writer *w, const char *key, const struct yaml_node *n)
{
    if (yaml_is_scalar (n)) {
        if (n->kind == YAML_STRING)
            yaml_add_text (w, key, n->text);
        else
            add_raw (w, key, n->len ? n->text : "null");
        return;
    }
    if (w->depth + 1 >= ARRAY_LEN (w->level)) {
        add_flow (w, key, n);
        return;
    }
    open_level (w, key, n->kind == YAML_LIST);
    for (uint32_t i = 0; i < n->len; i++) {
        if (n->kind == YAML_LIST)
            yaml_add_node (w, NULL, n->items[i]);
        else if (yaml_is_scalar (n->pairs[i].key))
            yaml_add_node (w, n->pairs[i].key->text, n->pairs[i].value);
    }
    yaml_close (w);
}

char *
yaml_writer_finish (struct yaml_writer *w)
{
    while (w->depth > 1)
        yaml_close (w);
    if (w->level[0].is_empty)
        buf_puts (&w->out, "{}\n");
    char *text = buf_steal (&w->out);
    *w = (struct yaml_writer){ 0 };
    return text;
}
