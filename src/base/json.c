/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include "base/alloc.h"
#include "base/json_write.h"

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
