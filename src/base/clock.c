/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

static uint64_t
read_us (clockid_t id)
{
    struct timespec t;
    clock_gettime (id, &t);
    if (t.tv_sec < 0) /* a wall clock before 1970, which no id and no line could hold */
        return 0;
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

uint64_t
clock_unix_ms (void)
{
    return read_us (CLOCK_REALTIME) / 1000;
}

uint64_t
clock_monotonic_ms (void)
{
    return read_us (CLOCK_MONOTONIC) / 1000;
}

uint64_t
clock_monotonic_us (void)
{
    return read_us (CLOCK_MONOTONIC);
}

uint64_t
clock_thread_us (void)
{
    return read_us (CLOCK_THREAD_CPUTIME_ID);
}

static void
format (uint64_t unix_ms, const char *zone, char *out, size_t size)
{
    time_t seconds = (time_t)(unix_ms / 1000);
    struct tm tm;
    gmtime_r (&seconds, &tm);
    char date[20];
    strftime (date, sizeof date, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf (out, size, "%s.%03u%s", date, (unsigned)(unix_ms % 1000), zone);
}

void
clock_rfc3339 (uint64_t unix_ms, char out[25])
{
    format (unix_ms, "Z", out, 25);
}
