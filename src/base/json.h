/* SPDX-License-Identifier: Apache-2.0
 *
 * Glue around Jansson: cleanup, compact deterministic text, and small typed readers.
 *
 * Text the runtime builds is compact UTF-8. JSON_TEXT_SORTED sorts object keys; JSON_TEXT_ORDERED
 * keeps insertion order.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <jansson.h>
#include <stdint.h>

static inline void
json_cleanupp (json_t **j)
{
    json_decref (*j);
}
#define _cleanup_json_ _cleanup_ (json_cleanupp)

enum json_text {
    JSON_TEXT_SORTED = 1,
    JSON_TEXT_ORDERED = 2,
};

/* Compact text; the caller frees it. */
char *json_text (const json_t *value, enum json_text how);
/* Two-space indented text; the caller frees it. */
char *json_pretty (const json_t *value, enum json_text how);

/* Parses exactly one value (any type, duplicate keys refused, depth bounded by Jansson).
 * Fails with <code>, the message naming <what>, line and column. */
json_t *json_parse (const char *text, size_t len, const char *what, enum diag_code code,
                    struct mur_error **err);

/* Half a surrogate pair and NUL, written as escapes, become U+FFFD in place. Models and clients
 * that cut texts write them, and Jansson refuses a whole text for one. */
void json_mend_escapes (char *text, size_t len);

/* Borrowed string member, or NULL when absent or of another type. */
const char *json_get_string (const json_t *object, const char *key);
/* Borrowed member, or NULL when absent or null, as writers put what is not set. */
json_t *json_get_set (const json_t *object, const char *key);
/* A member that is a non-negative integer. Returns false when absent or anything else. */
bool json_get_u64 (const json_t *object, const char *key, uint64_t *value);

/* Sets a member to a string, or to null when s is NULL. Invalid UTF-8 is replaced by U+FFFD. */
void json_set_string (json_t *object, const char *key, const char *s);
void json_set_string_n (json_t *object, const char *key, const char *s, size_t len);
void json_set_u64 (json_t *object, const char *key, uint64_t value);
void json_set_bool (json_t *object, const char *key, bool value);
