/* SPDX-License-Identifier: Apache-2.0
 *
 * Compact JSON text of Jansson values, written straight into a buffer.
 *
 * Always true: the same value gives the same bytes in every process (requests and their digests
 * depend on it), a number is written in the fewest digits that read back equal, and the text is
 * well-formed UTF-8 whatever the strings hold.
 */
#pragma once

#include "base/json.h"

/* Appends the same to a buffer. */
void json_append (struct buf *b, const json_t *value, enum json_text how);
/* Appends one quoted string; malformed UTF-8 becomes U+FFFD. */
void json_append_string (struct buf *b, const char *s, size_t len);

/* A new string value from bytes that may be malformed UTF-8 (replaced by U+FFFD). */
json_t *json_string_lossy (const char *s, size_t len);
