/* SPDX-License-Identifier: Apache-2.0
 *
 * What a launch has come to so far, over all its tasks. The task loop's alone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct tally {
    struct session_totals {
        uint64_t turns, input_tokens, output_tokens, tool_calls, shell_calls;
    } totals;
    struct usage_totals { /* for session-status: what some call reported */
        struct usage_count {
            bool is_known;
            uint64_t value;
        } input, output, cached, cache_write;
        uint64_t unreported_calls;
    } usage;
    uint64_t launched_ms; /* monotonic */
    uint64_t plan_count;  /* plans stored: the number in the newest file's name */
};

/* Takes in what a call reported, or that it reported nothing. */
static inline void
usage_count_add (struct usage_count *c, bool is_reported, uint64_t value)
{
    c->is_known = c->is_known || is_reported;
    c->value += value;
}
