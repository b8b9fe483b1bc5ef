/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include "base/alloc.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

char *
buf_reserve (struct buf *b, size_t len)
{
    size_t need = b->len + len + 1;
    if (need > b->cap) {
        size_t cap = b->cap ? b->cap : 64;
        while (cap < need)
            cap *= 2;
        b->data = x_realloc (b->data, cap);
        b->cap = cap;
    }
    return b->data + b->len;
}

void
buf_append (struct buf *b, const void *data, size_t len)
{
    char *to = buf_reserve (b, len);
    if (len)
        memcpy (to, data, len);
    b->len += len;
    b->data[b->len] = '\0';
}

void
buf_puts (struct buf *b, const char *s)
{
    buf_append (b, s, strlen (s));
}

void
buf_putc (struct buf *b, char c)
{
    buf_append (b, &c, 1);
}

void
buf_vprintf (struct buf *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy (again, ap);
    int len = vsnprintf (NULL, 0, fmt, ap);
    if (len >= 0) {
        char *to = buf_reserve (b, (size_t)len);
        vsnprintf (to, (size_t)len + 1, fmt, again);
        b->len += (size_t)len;
    }
    va_end (again);
}

void
buf_printf (struct buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    buf_vprintf (b, fmt, ap);
    va_end (ap);
}

void
buf_truncate (struct buf *b, size_t len)
{
    if (len < b->len) {
        b->len = len;
        b->data[len] = '\0';
    }
}

char *
buf_steal (struct buf *b)
{
    buf_reserve (b, 0)[0] = '\0';
    char *data = b->data;
    *b = (struct buf){ 0 };
    return data;
}

void
buf_free (struct buf *b)
{
    free (b->data);
    *b = (struct buf){ 0 };
}

void
strv_take (struct strv *v, char *s)
{
    if (v->len + 2 > v->cap) {
        v->cap = v->cap ? v->cap * 2 : 8;
        v->items = x_reallocarray (v->items, v->cap, sizeof (char *));
    }
    v->items[v->len++] = s;
    v->items[v->len] = NULL;
}

void
strv_push (struct strv *v, const char *s)
{
    strv_take (v, x_strdup (s));
}

void
strv_printf (struct strv *v, const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    strv_take (v, x_vasprintf (fmt, ap));
    va_end (ap);
}

bool
strv_contains (const struct strv *v, const char *s)
{
    for (size_t i = 0; i < v->len; i++)
        if (strcmp (v->items[i], s) == 0)
            return true;
    return false;
}

static int
compare_strings (const void *a, const void *b)
{
    return strcmp (*(char *const *)a, *(char *const *)b);
}

void
strv_sort (struct strv *v)
{
    if (v->len)
        qsort (v->items, v->len, sizeof (char *), compare_strings);
}

char *
strv_join (const struct strv *v, const char *separator)
{
    struct buf b = { 0 };
    for (size_t i = 0; i < v->len; i++) {
        if (i)
            buf_puts (&b, separator);
        buf_puts (&b, v->items[i]);
    }
    return buf_steal (&b);
}

void
strv_free (struct strv *v)
{
    for (size_t i = 0; i < v->len; i++)
        free (v->items[i]);
    free (v->items);
    *v = (struct strv){ 0 };
}

bool
str_starts (const char *s, const char *prefix)
{
    return strncmp (s, prefix, strlen (prefix)) == 0;
}

bool
str_ends (const char *s, const char *suffix)
{
    size_t a = strlen (s), b = strlen (suffix);
    return a >= b && memcmp (s + a - b, suffix, b) == 0;
}

char *
str_header_value (char *line, const char *name)
{
    size_t len = strlen (name);
    if (strncasecmp (line, name, len) != 0 || line[len] != ':')
        return NULL;
    char *value = line + len + 1;
    value += strspn (value, " \t");
    size_t end = strlen (value);
    while (end && strchr (" \t\r", value[end - 1]))
        value[--end] = '\0';
    return value;
}

void
str_lower (char *s)
{
    for (; *s; s++)
        if (*s >= 'A' && *s <= 'Z')
            *s = (char)(*s - 'A' + 'a');
}

size_t
utf8_char_len (const unsigned char *s, size_t left)
{
    if (s[0] < 0x80)
        return 1;
    size_t need = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || left < need)
        return 0;
    for (size_t i = 1; i < need; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return need;
}

bool
utf8_is_valid (const char *s, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t n = utf8_char_len ((const unsigned char *)s + i, len - i);
        if (n == 0)
            return false;
        i += n;
    }
    return true;
}

size_t
utf8_space_len (const char *s)
{
    /* U+0085, U+00A0, U+1680, U+2000 to U+200A, U+2028, U+2029, U+202F, U+205F, U+3000 */
    static const char *const wide[] = { "\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80",
                                        "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaf",
                                        "\xe2\x81\x9f", "\xe3\x80\x80" };
    if (*s == ' ' || (*s >= '\t' && *s <= '\r'))
        return 1;
    for (size_t i = 0; i < ARRAY_LEN (wide); i++)
        if (str_starts (s, wide[i]))
            return strlen (wide[i]);
    unsigned char last = str_starts (s, "\xe2\x80") ? (unsigned char)s[2] : 0;
    return last >= 0x80 && last <= 0x8a ? 3 : 0;
}

size_t
utf8_cut (const char *s, size_t len, size_t limit)
{
    if (len <= limit)
        return len;
    size_t cut = limit;
    while (cut > 0 && ((unsigned char)s[cut] & 0xc0) == 0x80)
        cut--;
    return cut;
}

size_t
utf8_first (const char *s, size_t len, size_t count)
{
    size_t at = 0;
    for (; at < len && count; count--) {
        size_t n = utf8_char_len ((const unsigned char *)s + at, len - at);
        at += n ? n : 1;
    }
    return at;
}
