/* SPDX-License-Identifier: Apache-2.0
 *
 * What a provider's answer says it used, read from the bytes as they pass: JSON, or server-sent
 * events of JSON, in the Messages, Responses and Chat Completions forms. Anything else says
 * nothing.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct provider_usage {
    uint64_t input, output; /* input without what the two below count */
    uint64_t cache_read, cache_creation;
    bool is_told;
};

/* Zeroed is new. */
struct provider_usage_reader {
    struct provider_usage seen;
    struct buf line; /* of events, or the whole of a JSON body, bounded */
    bool is_events;
    bool is_over; /* a line passed the bound: the rest is not read */
};

void provider_usage_feed (struct provider_usage_reader *r, const char *data, size_t len);
/* The answer is complete. */
void provider_usage_end (struct provider_usage_reader *r);
void provider_usage_free (struct provider_usage_reader *r);
