/* SPDX-License-Identifier: Apache-2.0
 *
 * A growing byte buffer that is always NUL-terminated, and NULL-terminated string vectors.
 *
 * `struct buf b = { 0 };` is an empty buffer; `_cleanup_buf_` frees it; buf_steal hands its bytes
 * out.
 */
#pragma once

#include "base/cleanup.h"

#include <stdarg.h>
#include <stdbool.h>

struct buf {
    char *data; /* NULL while nothing was appended */
    size_t len;
    size_t cap;
};

void buf_append (struct buf *b, const void *data, size_t len);
void buf_puts (struct buf *b, const char *s);
void buf_putc (struct buf *b, char c);
void buf_printf (struct buf *b, const char *fmt, ...) _printf_ (2, 3);
void buf_vprintf (struct buf *b, const char *fmt, va_list ap);
/* Makes room for <len> more bytes and returns where they go; follow with b->len += written. */
char *buf_reserve (struct buf *b, size_t len);
/* Cuts to <len> bytes (not above the present length). */
void buf_truncate (struct buf *b, size_t len);
/* Hands the NUL-terminated bytes out ("" when empty) and leaves the buffer empty. */
char *buf_steal (struct buf *b);
void buf_free (struct buf *b);
#define _cleanup_buf_ _cleanup_ (buf_free)

/* A NULL-terminated vector of owned strings. `struct strv v = { 0 };` is empty. */
struct strv {
    char **items; /* NULL while empty, else NULL-terminated */
    size_t len;
    size_t cap;
};

void strv_push (struct strv *v, const char *s);
/* The same, taking the string over. */
void strv_take (struct strv *v, char *s);
void strv_printf (struct strv *v, const char *fmt, ...) _printf_ (2, 3);
bool strv_contains (const struct strv *v, const char *s);
void strv_sort (struct strv *v);
char *strv_join (const struct strv *v, const char *separator);
void strv_free (struct strv *v);
#define _cleanup_strv_ _cleanup_ (strv_free)

static inline bool
str_eq (const char *a, const char *b)
{
    return a == b || (a && b && __builtin_strcmp (a, b) == 0);
}

bool str_starts (const char *s, const char *prefix);
bool str_ends (const char *s, const char *suffix);
/* ASCII lower case, in place. */
void str_lower (char *s);
/* The value of "Name: value" when <line> is that header (any case), trimmed in place; else NULL. */
char *str_header_value (char *line, const char *name);
/* Bytes of the white space <s> begins with (Unicode's White_Space), 0 when it begins with none. */
size_t utf8_space_len (const char *s);
/* True when the bytes are well-formed UTF-8 (no surrogates, no overlong forms). */
/* Bytes of the well-formed character at s, of which <left> are there; 0 when it is none. */
size_t utf8_char_len (const unsigned char *s, size_t left);
bool utf8_is_valid (const char *s, size_t len);
/* The largest length <= limit that does not cut a character of well-formed UTF-8. */
size_t utf8_cut (const char *s, size_t len, size_t limit);
/* The length of the first <count> characters, a byte that is none counted as one. */
size_t utf8_first (const char *s, size_t len, size_t count);
