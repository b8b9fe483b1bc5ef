/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"

#include <stdint.h>
#include <string.h>

static _noreturn_ void
out_of_memory (void)
{
    static const char text[] = "murmur: out of memory\n";
    ssize_t written _unused_ = write (STDERR_FILENO, text, sizeof text - 1);
    abort ();
}

void *
x_malloc (size_t size)
{
    void *p = malloc (size ? size : 1);
    if (! p)
        out_of_memory ();
    return p;
}

void *
x_calloc (size_t count, size_t size)
{
    void *p = calloc (count ? count : 1, size ? size : 1);
    if (! p)
        out_of_memory ();
    return p;
}

void *
x_realloc (void *p, size_t size)
{
    void *q = realloc (p, size ? size : 1);
    if (! q)
        out_of_memory ();
    return q;
}

void *
x_reallocarray (void *p, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow (count, size, &bytes))
        out_of_memory ();
    return x_realloc (p, bytes);
}

void *
x_memdup (const void *p, size_t len)
{
    void *copy = x_malloc (len);
    if (len)
        memcpy (copy, p, len);
    return copy;
}

char *
x_strndup (const char *s, size_t len)
{
    char *copy = x_malloc (len + 1);
    if (len)
        memcpy (copy, s, len);
    copy[len] = '\0';
    return copy;
}

char *
x_strdup (const char *s)
{
    return x_strndup (s, strlen (s));
}

char *
x_vasprintf (const char *fmt, va_list ap)
{
    char *text = NULL;
    if (vasprintf (&text, fmt, ap) < 0)
        out_of_memory ();
    return text;
}

char *
x_asprintf (const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    char *text = x_vasprintf (fmt, ap);
    va_end (ap);
    return text;
}
