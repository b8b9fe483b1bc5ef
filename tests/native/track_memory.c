/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of one call of a native driver. See track_memory.h.
 */
#include "tests/native/track_memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct tracked {
    struct tracked *next, *last;
    size_t size;
    max_align_t memory[];
};

static struct tracked *tracked;

void *
track_malloc (size_t size)
{
    struct tracked *t = malloc (sizeof *t + size);
    if (t == NULL)
        abort ();
    *t = (struct tracked){ .next = tracked, .size = size };
    if (tracked != NULL)
        tracked->last = t;
    tracked = t;
    return t->memory;
}

void
track_free (void *memory)
{
    if (memory == NULL)
        return;
    struct tracked *t = (struct tracked *)((char *)memory - offsetof (struct tracked, memory));
    if (t->last != NULL)
        t->last->next = t->next;
    else
        tracked = t->next;
    if (t->next != NULL)
        t->next->last = t->last;
    free (t);
}

void *
track_calloc (size_t count, size_t size)
{
    return memset (track_malloc (count * size), 0, count * size);
}

void *
track_realloc (void *memory, size_t size)
{
    void *grown = track_malloc (size);
    if (memory != NULL) {
        struct tracked *t = (struct tracked *)((char *)memory - offsetof (struct tracked, memory));
        memcpy (grown, memory, t->size < size ? t->size : size);
        track_free (memory);
    }
    return grown;
}

void
track_free_all (void)
{
    while (tracked != NULL)
        track_free (tracked->memory);
}
