/* SPDX-License-Identifier: Apache-2.0
 *
 * Moments as the API server writes them.
 */
#pragma once

#include <stdint.h>
#include <time.h>

/* Unix milliseconds of "2026-11-30T19:00:00Z"; 0 for anything else, or NULL. */
static inline uint64_t
fleet_time_ms (const char *text)
{
    struct tm tm = { 0 };
    if (! text || ! strptime (text, "%Y-%m-%dT%H:%M:%S", &tm))
        return 0;
    time_t at = timegm (&tm);
    return at > 0 ? (uint64_t)at * 1000 : 0;
}
