/* SPDX-License-Identifier: Apache-2.0
 *
 * "Did you mean": the nearest of some known words.
 */
#pragma once

#include <stddef.h>

/* How many single-character edits (or swaps of neighbours) lead from one word to the other; above
 * <limit> any number above it. */
size_t edit_distance (const char *a, const char *b, size_t limit);

/* Keeps the best candidate of a series: start with { NULL, 0 } and offer every known word. */
struct suggestion {
    const char *word; /* NULL while none is near */
    size_t distance;
};
void suggestion_offer (struct suggestion *s, const char *typed, const char *known);
