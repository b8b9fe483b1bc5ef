/* SPDX-License-Identifier: Apache-2.0
 *
 * What a provider's answer says it used, read from the bytes as they pass: JSON, or server-sent
 * events of JSON, in the Messages, Responses, Chat Completions and generateContent forms. A stream
 * that tells no usage (Chat Completions does only when it is asked to) is judged by its size, so
 * that a ceiling holds all the same. Anything else says nothing.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct provider_usage {
    uint64_t input, output; /* input without what the two below count */
    uint64_t cache_read, cache_creation;
    bool is_told, is_estimated;
};

/* Zeroed is new. */
struct provider_usage_reader {
    struct provider_usage seen;
    struct buf line; /* of events, or the whole of a JSON body, bounded */
    uint64_t deltas; /* events that hold a piece of an answer */
    bool is_events;
    bool is_skipping; /* the line passed the bound: its rest is not read */
};

void provider_usage_feed (struct provider_usage_reader *r, const char *data, size_t len);
/* The answer, to a request of so many bytes, is complete. */
void provider_usage_end (struct provider_usage_reader *r, size_t request_bytes);
void provider_usage_free (struct provider_usage_reader *r);
