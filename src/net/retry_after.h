/* SPDX-License-Identifier: Apache-2.0
 *
 * When a server says to come back: the headers retry-after-ms and retry-after in the forms they
 * come in.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Milliseconds of a retry-after-ms header: a number, with a fraction or without. Returns false when
 * it is none, a negative one included. */
bool retry_after_read_ms (const char *text, uint64_t *ms);
/* Milliseconds of a retry-after header: seconds, with a fraction or an "s" behind them or without,
 * or a date in any of HTTP's three forms against <now_unix_ms>; a date that is past is 0. */
bool retry_after_read (const char *text, uint64_t now_unix_ms, uint64_t *ms);
