/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* --- the limits of a shell --- */

static const struct {
    int error;
    int resource;
    char letter; /* of ulimit */
    rlim_t unit; /* it counts in; 1: things */
    rlim_t from; /* from here on it is not the cause */
} limits[] = {
    { EMFILE, RLIMIT_NOFILE, 'n', 1, RLIM_INFINITY },
    { EFBIG, RLIMIT_FSIZE, 'f', 1024, RLIM_INFINITY },
    { ENOMEM, RLIMIT_DATA, 'd', 1024, (rlim_t)256 << 20 },
    { ENOMEM, RLIMIT_AS, 'v', 1024, RLIM_INFINITY },
    /* A thread that cannot be made. */
    { EAGAIN, RLIMIT_DATA, 'd', 1024, (rlim_t)256 << 20 },
    { EAGAIN, RLIMIT_AS, 'v', 1024, RLIM_INFINITY },
    { EAGAIN, RLIMIT_NPROC, 'u', 1, 256 },
};

size_t
limit_note (int error, char to[LIMIT_NOTE_BYTES])
{
    int saved = errno, len = 0;
    struct rlimit is;
    to[0] = '\0';
    for (size_t i = 0; i < sizeof limits / sizeof *limits && len == 0; i++) {
        if (limits[i].error != error || getrlimit (limits[i].resource, &is) != 0 ||
            is.rlim_cur == RLIM_INFINITY || is.rlim_cur >= limits[i].from)
            continue;
        len = snprintf (to, LIMIT_NOTE_BYTES, " (`ulimit -%c` allows %llu%s)", limits[i].letter,
                        (unsigned long long)(is.rlim_cur / limits[i].unit),
                        limits[i].unit == 1 ? "" : " KiB");
    }
    errno = saved;
    return (size_t)len;
}

size_t
limit_small_stack_bytes (void)
{
    struct rlimit is;
    bool is_small = getrlimit (RLIMIT_STACK, &is) == 0 && is.rlim_cur != RLIM_INFINITY &&
                    is.rlim_cur < LIMIT_STACK_LEAST_BYTES;
    return is_small ? (size_t)is.rlim_cur : 0;
}

/* --- the end --- */

static void
say (const char *text)
{
    ssize_t written _unused_ = write (STDERR_FILENO, text, strlen (text));
}

/* Under a limit that somebody set this is an error like another; without one a fault to look at. */
static void
end_by_limit (void)
{
    char note[LIMIT_NOTE_BYTES];
    if (limit_note (ENOMEM, note) == 0)
        return;
    say ("murmur: out of memory");
    say (note);
    say (": allow more of it, `ulimit -d unlimited -v unlimited`; the trace has no session_end\n");
    _exit (1);
}

void
alloc_out_of_memory (void)
{
    end_by_limit ();
    (void)signal (SIGABRT, SIG_DFL);
    say ("murmur: out of memory: it ends here, and the trace has no session_end\n");
    abort ();
}

/* A library's own abort is no silent end either. */
static void
on_abort (int number)
{
    end_by_limit ();
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
