/* SPDX-License-Identifier: Apache-2.0
 *
 * "Did you mean": keeps the nearest of the known words offered, when one is near enough.
 */
#pragma once

#include <stddef.h>

/* Start with { NULL, 0 } and offer every known word. */
struct suggestion {
    const char *word; /* NULL while none is near */
    size_t distance;
};
void suggestion_offer (struct suggestion *s, const char *typed, const char *known);
