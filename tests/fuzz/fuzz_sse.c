/* SPDX-License-Identifier: Apache-2.0
 *
 * The reader of server-sent events: the same events whether the bytes come at once or one by one.
 */
#include "tests/fuzz/fuzzing.h"

#include "net/sse.h"

struct seen {
    size_t events;
    size_t bytes;
};

static bool
count (void *ctx, const char *id, const char *data, size_t len)
{
    struct seen *seen = ctx;
    (void)data;
    seen->events++;
    seen->bytes += len + strlen (id);
    return true;
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    struct sse_parser whole = { 0 }, pieces = { 0 };
    struct seen at_once = { 0 }, one_by_one = { 0 };
    sse_feed (&whole, (const char *)data, size, count, &at_once);
    for (size_t i = 0; i < size; i++)
        sse_feed (&pieces, (const char *)data + i, 1, count, &one_by_one);
    assert (at_once.events == one_by_one.events && at_once.bytes == one_by_one.bytes);
    sse_parser_free (&whole);
    sse_parser_free (&pieces);
    return 0;
}
