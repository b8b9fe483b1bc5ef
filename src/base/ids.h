/* SPDX-License-Identifier: Apache-2.0
 *
 * Ids: a prefix plus a lower-case UUIDv7 without hyphens (spec/records.md 1).
 *
 * Strictly increasing within a process even inside one millisecond, so lexical order is the order
 * of minting.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ID_LEN 36 /* "ses_" + 32 hex digits */

struct id {
    char text[ID_LEN + 1];
};

/* Mints an id with a four-character prefix such as "ses_". Thread-safe. */
struct id id_new (const char *prefix);
/* Mints a bare hyphenated UUIDv7 (harness sessions, temporary names). */
void uuid_text (char out[37]);
/* True for <prefix> followed by exactly 32 lower-case hex digits. */
bool id_is_valid (const char *text, const char *prefix);
/* Unix milliseconds an id was minted at, read from its first 12 hex digits. */
uint64_t id_time_ms (const char *id);
