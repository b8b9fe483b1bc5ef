/* SPDX-License-Identifier: Apache-2.0
 *
 * From many texts to small numbers in twelve bytes each: the texts themselves are not kept.
 *
 * Always true: a text that was put is found; one that was not is found by a chance of 2^-64 for
 * each that was, so where that matters whoever asks looks at what the number stands for.
 */
#pragma once

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text_index {
    uint64_t *hashes; /* 0: the place is free */
    uint32_t *values;
    size_t len, cap;
    uint64_t seed;
};

/* Room for <expected> texts; it grows beyond. `{ 0 }` is an empty index, too. */
void text_index_init (struct text_index *x, size_t expected);
void text_index_free (struct text_index *x);
#define _cleanup_text_index_ _cleanup_ (text_index_free)

/* The latest number of a text stands. */
void text_index_put (struct text_index *x, const char *text, uint32_t value);
/* False when it was never put. */
bool text_index_get (const struct text_index *x, const char *text, uint32_t *value);
