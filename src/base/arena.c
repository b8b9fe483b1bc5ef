/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include "base/alloc.h"

#include <stdint.h>
#include <string.h>

struct block {
    struct block *next;
    size_t used;
    size_t size;
    _Alignas(16) char bytes[];
};

struct arena {
    struct block *blocks;
};

struct arena *
arena_new (void)
{
    return x_new0 (struct arena);
}

void
arena_free (struct arena *a)
{
    if (! a)
        return;
    for (struct block *b = a->blocks, *next; b; b = next) {
        next = b->next;
        free (b);
    }
    free (a);
}

void *
arena_alloc (struct arena *a, size_t size)
{
    size = (size + 15) & ~(size_t)15;
    struct block *b = a->blocks;
    if (! b || b->size - b->used < size) {
        size_t next = b ? b->size * 2 : 1024;
        if (next > 1 << 20)
            next = 1 << 20;
        if (next < size)
            next = size;
        b = x_calloc (1, sizeof *b + next);
        b->size = next;
        b->next = a->blocks;
        a->blocks = b;
    }
    void *p = b->bytes + b->used;
    b->used += size;
    return p;
}

char *
arena_strndup (struct arena *a, const char *s, size_t len)
{
    char *copy = arena_alloc (a, len + 1);
    if (len)
        memcpy (copy, s, len);
    return copy;
}

char *
arena_strdup (struct arena *a, const char *s)
{
    return arena_strndup (a, s, strlen (s));
}

char *
arena_printf (struct arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    _cleanup_free_ char *text = x_vasprintf (fmt, ap);
    va_end (ap);
    return arena_strdup (a, text);
}
