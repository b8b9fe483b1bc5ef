/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"

#include <jansson.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>

static void
say (const char *text)
{
    ssize_t written _unused_ = write (STDERR_FILENO, text, strlen (text));
}

void
alloc_out_of_memory (void)
{
    (void)signal (SIGABRT, SIG_DFL);
    say ("murmur: out of memory: it ends here, and the trace has no session_end\n");
    abort ();
}

/* A library's own abort is no silent end either. */
static void
on_abort (int number)
{
    say ("murmur: aborted, out of memory or by a fault of its own: the trace has no session_end\n");
    (void)signal (number, SIG_DFL);
    (void)raise (number);
}

void
alloc_init (void)
{
    (void)signal (SIGABRT, on_abort);
    json_set_alloc_funcs (x_malloc, free);
}

void *
x_malloc (size_t size)
{
    void *p = malloc (size ? size : 1);
    if (! p)
        alloc_out_of_memory ();
    return p;
}

void *
x_calloc (size_t count, size_t size)
{
    void *p = calloc (count ? count : 1, size ? size : 1);
    if (! p)
        alloc_out_of_memory ();
    return p;
}

void *
x_realloc (void *p, size_t size)
{
    void *q = realloc (p, size ? size : 1);
    if (! q)
        alloc_out_of_memory ();
    return q;
}

void *
x_reallocarray (void *p, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow (count, size, &bytes))
        alloc_out_of_memory ();
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
        alloc_out_of_memory ();
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
