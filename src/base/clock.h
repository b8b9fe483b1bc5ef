/* SPDX-License-Identifier: Apache-2.0
 *
 * Clocks and their text forms.
 */
#pragma once

#include <stdint.h>

/* Wall clock, Unix milliseconds. */
uint64_t clock_unix_ms (void);
/* Monotonic milliseconds, for durations and deadlines. */
uint64_t clock_monotonic_ms (void);
/* Monotonic microseconds. */
uint64_t clock_monotonic_us (void);
/* What the calling thread has had of a processor. Microseconds. */
uint64_t clock_thread_us (void);
/* "2026-01-02T03:04:05.678Z" of a Unix time in ms. */
void clock_rfc3339 (uint64_t unix_ms, char out[25]);
