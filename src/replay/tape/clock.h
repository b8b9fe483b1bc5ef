/* SPDX-License-Identifier: Apache-2.0
 *
 * The times one guest read, as bytes: each a letter for its clock and what passed since that clock
 * was read last.
 */
#pragma once

#include "base/buf.h"

#include <stdint.h>

enum clock_kind { CLOCK_WALL, CLOCK_MONOTONIC, CLOCK_KINDS };

/* Where a sequence of readings stands. */
struct clock_state {
    uint64_t last[CLOCK_KINDS]; /* nanoseconds */
};

void
clock_reading_append (struct clock_state *s, enum clock_kind kind, uint64_t ns, struct buf *out);
/* The next reading of <data> from *at on. False: there is none left, or it is of the other clock;
 * *at is unchanged then. */
bool clock_reading_take (struct clock_state *s, enum clock_kind kind, const char *data, size_t len,
                         size_t *at, uint64_t *ns);
