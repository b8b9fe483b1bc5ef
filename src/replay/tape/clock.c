/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/tape/clock.h"

static const char letters[CLOCK_KINDS] = { [CLOCK_WALL] = 'w', [CLOCK_MONOTONIC] = 'm' };

/* Small numbers of either sign as small numbers without one. */
static uint64_t
zigzag (int64_t n)
{
    return ((uint64_t)n << 1) ^ (uint64_t)(n >> 63);
}

static int64_t
unzigzag (uint64_t n)
{
    return (int64_t)(n >> 1) ^ -(int64_t)(n & 1);
}

void
clock_reading_append (struct clock_state *s, enum clock_kind kind, uint64_t ns, struct buf *out)
{
    uint64_t left = zigzag ((int64_t)(ns - s->last[kind]));
    s->last[kind] = ns;
    buf_putc (out, letters[kind]);
    for (; left >= 0x80; left >>= 7)
        buf_putc (out, (char)(left | 0x80));
    buf_putc (out, (char)left);
}

bool
clock_reading_take (struct clock_state *s, enum clock_kind kind, const char *data, size_t len,
                    size_t *at, uint64_t *ns)
{
    uint64_t value = 0;
    size_t i = *at;
    if (i >= len || data[i++] != letters[kind])
        return false;
    for (unsigned shift = 0; i < len && shift < 64; shift += 7) {
        unsigned char byte = (unsigned char)data[i++];
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte & 0x80)
            continue;
        *ns = s->last[kind] += (uint64_t)unzigzag (value);
        *at = i;
        return true;
    }
    return false;
}
