/* SPDX-License-Identifier: Apache-2.0
 *
 * Token counts: the cl100k_base byte-pair encoding over one mapped, shared, read-only table (made
 * by scripts/build-tokens).
 *
 * Without the table a count is bytes / 4, rounded up. Thread-safe; the table is mapped by the first
 * count.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Tokens of UTF-8 text, special tokens ("<|endoftext|>") recognised as one each. */
uint64_t tokens_count (const char *text, size_t len);
/* True when the exact table is there. */
bool tokens_are_exact (void);
/* Lets go of the table's pages; the next count reads them from the page cache again. */
void tokens_release_idle (void);
