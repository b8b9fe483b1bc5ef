/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/read/text_index.h"

#include "base/alloc.h"

#include <sys/random.h>

#define SMALLEST 64

static uint64_t
hash_of (const struct text_index *x, const char *text)
{
    uint64_t h = 0xcbf29ce484222325ull ^ x->seed; /* FNV-1a, then mixed */
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        h = (h ^ *c) * 0x100000001b3ull;
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93ull;
    h ^= h >> 32;
    return h ? h : 1;
}

static void
make_room (struct text_index *x, size_t cap)
{
    x->cap = cap;
    x->hashes = x_new_array (uint64_t, cap);
    x->values = x_new_array (uint32_t, cap);
}

void
text_index_init (struct text_index *x, size_t expected)
{
    size_t cap = SMALLEST;
    while (cap - cap / 8 < expected)
        cap *= 2;
    *x = (struct text_index){ 0 };
    if (getrandom (&x->seed, sizeof (x->seed), GRND_NONBLOCK) < 0)
        x->seed = 0;
    make_room (x, cap);
}

void
text_index_free (struct text_index *x)
{
    free (x->hashes);
    free (x->values);
    *x = (struct text_index){ 0 };
}

/* Where a hash is, or the free place where it belongs. */
static size_t
place_of (const struct text_index *x, uint64_t hash)
{
    size_t at = (size_t)hash & (x->cap - 1);
    while (x->hashes[at] && x->hashes[at] != hash)
        at = (at + 1) & (x->cap - 1);
    return at;
}

static void
grow (struct text_index *x)
{
    struct text_index old = *x;
    make_room (x, old.cap * 2);
    for (size_t i = 0; i < old.cap; i++) {
        if (! old.hashes[i])
            continue;
        size_t at = place_of (x, old.hashes[i]);
        x->hashes[at] = old.hashes[i];
        x->values[at] = old.values[i];
    }
    text_index_free (&old);
}

void
text_index_put (struct text_index *x, const char *text, uint32_t value)
{
    if (! x->cap)
        text_index_init (x, 0);
    if (x->len >= x->cap - x->cap / 8)
        grow (x);
    uint64_t hash = hash_of (x, text);
    size_t at = place_of (x, hash);
    x->len += ! x->hashes[at];
    x->hashes[at] = hash;
    x->values[at] = value;
}

bool
text_index_get (const struct text_index *x, const char *text, uint32_t *value)
{
    if (! x->cap)
        return false;
    size_t at = place_of (x, hash_of (x, text));
    if (! x->hashes[at])
        return false;
    *value = x->values[at];
    return true;
}
