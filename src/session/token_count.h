/* SPDX-License-Identifier: Apache-2.0
 *
 * How many tokens a text costs: the runtime's own estimate, used for budgets and records
 * (spec/session.md 5.6).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Tokens of a text. Without the ranks table: bytes / 4, rounded up. */
uint64_t token_count (const char *text, size_t len);
