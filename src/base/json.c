/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include "base/alloc.h"
#include "base/json_write.h"

#include <stdlib.h>
#include <string.h>

static int
append_chunk (const char *data, size_t len, void *to)
{
    buf_append (to, data, len);
    return 0;
}

static size_t
flags_of (enum json_text how)
{
    return JSON_COMPACT | JSON_ENCODE_ANY | (how == JSON_TEXT_SORTED ? JSON_SORT_KEYS : 0);
}

char *
json_text (const json_t *value, enum json_text how)
{
    struct buf b = { 0 };
    json_append (&b, value, how);
    return buf_steal (&b);
}

char *
json_pretty (const json_t *value, enum json_text how)
{
    struct buf b = { 0 };
    json_dump_callback (value, append_chunk, &b,
                        (flags_of (how) & ~(size_t)JSON_COMPACT) | JSON_INDENT (2));
    return buf_steal (&b);
}

json_t *
json_parse (const char *text, size_t len, const char *what, enum diag_code code,
            struct mur_error **err)
{
    json_error_t at;
    json_t *value = json_loadb (text, len, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &at);
    if (! value)
        mur_fail (err, code, "%s: not valid JSON at line %d, column %d: %s", what, at.line,
                  at.column, at.text);
    return value;
}

const char *
json_get_string (const json_t *object, const char *key)
{
    return json_string_value (json_object_get (object, key));
}

json_t *
json_get_set (const json_t *object, const char *key)
{
    json_t *member = json_object_get (object, key);
    return json_is_null (member) ? NULL : member;
}

bool
json_get_u64 (const json_t *object, const char *key, uint64_t *value)
{
    const json_t *member = json_object_get (object, key);
    if (! json_is_integer (member) || json_integer_value (member) < 0)
        return false;
    *value = (uint64_t)json_integer_value (member);
    return true;
}

void
json_set_string_n (json_t *object, const char *key, const char *s, size_t len)
{
    json_object_set_new (object, key, s ? json_string_lossy (s, len) : json_null ());
}

void
json_set_string (json_t *object, const char *key, const char *s)
{
    json_set_string_n (object, key, s, s ? strlen (s) : 0);
}

void
json_set_u64 (json_t *object, const char *key, uint64_t value)
{
    json_object_set_new (object, key, json_integer ((json_int_t)value));
}

void
json_set_bool (json_t *object, const char *key, bool value)
{
    json_object_set_new (object, key, json_boolean (value));
}

/* The code of the \uXXXX escape at <at>, or -1. */
static long
escape_code (const char *at, const char *end)
{
    char digits[5] = "";
    if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
        return -1;
    memcpy (digits, at + 2, 4);
    return strspn (digits, "0123456789abcdefABCDEF") == 4 ? strtol (digits, NULL, 16) : -1;
}

void
json_mend_escapes (char *text, size_t len)
{
    const char *end = text + len;
    for (char *at = text; at < end;) {
        long code = escape_code (at, end);
        bool is_high = code >= 0xd800 && code < 0xdc00;
        long low = is_high ? escape_code (at + 6, end) : -1;
        if (low >= 0xdc00 && low < 0xe000) {
            at += 12;
            continue;
        }
        if (code == 0 || (code >= 0xd800 && code < 0xe000))
            memcpy (at + 2, "fffd", 4);
        at += code >= 0 ? 6 : *at == '\\' ? 2 : 1;
    }
}
