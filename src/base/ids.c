/* SPDX-License-Identifier: Apache-2.0
 *
 * UUIDv7 ids. Layout: 48 bits of Unix ms, version 7, a 12-bit counter, variant, 62 random bits (RFC
 * 9562 6.2 method 1: the counter keeps ids of one millisecond in order; an overflowing counter
 * borrows the next millisecond).
 */
#include "base/ids.h"

#include "base/clock.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* Of the newest id: its ms, then 12 bits of its counter. No lock, for hosts that fork meanwhile. */
static _Atomic uint64_t last_stamp;

static uint64_t
next_stamp (unsigned start)
{
    uint64_t now = clock_unix_ms (), last = atomic_load (&last_stamp), next;
    do {
        bool is_later = now > last >> 12;
        next = is_later ? now << 12 | (start & 0x3ff) : last + 1; /* room for 3072 more */
    } while (! atomic_compare_exchange_weak (&last_stamp, &last, next));
    return next;
}

static void
uuid_bytes (unsigned char out[16])
{
    while (getrandom (out, 16, 0) != 16)
        ;
    uint64_t stamp = next_stamp ((unsigned)out[6] << 8 | out[7]);
    uint64_t ms = stamp >> 12;
    unsigned count = stamp & 0xfff;
    for (int i = 0; i < 6; i++)
        out[i] = (unsigned char)(ms >> (40 - 8 * i));
    out[6] = (unsigned char)(0x70 | count >> 8);
    out[7] = (unsigned char)count;
    out[8] = (unsigned char)((out[8] & 0x3f) | 0x80);
}

struct id
id_new (const char *prefix)
{
    unsigned char raw[16];
    uuid_bytes (raw);
    struct id id;
    char *at = stpncpy (id.text, prefix, 4);
    for (int i = 0; i < 16; i++)
        at += snprintf (at, 3, "%02x", raw[i]);
    return id;
}

void
uuid_text (char out[37])
{
    unsigned char raw[16];
    uuid_bytes (raw);
    char *at = out;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *at++ = '-';
        at += snprintf (at, 3, "%02x", raw[i]);
    }
}

bool
id_is_valid (const char *text, const char *prefix)
{
    size_t skip = strlen (prefix);
    return strncmp (text, prefix, skip) == 0 && strlen (text) == skip + 32 &&
           strspn (text + skip, "0123456789abcdef") == 32;
}

uint64_t
id_time_ms (const char *id)
{
    const char *at = strchr (id, '_');
    at = at ? at + 1 : id;
    uint64_t ms = 0;
    for (int i = 0; i < 12 && at[i]; i++) {
        int c = at[i];
        ms = ms << 4 | (uint64_t)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
    }
    return ms;
}
