/* SPDX-License-Identifier: Apache-2.0 */
#include "session/conversation/redact_json.h"
#include "base/json_write.h"

#include "base/alloc.h"

#include <string.h>

static json_t *
redacted (struct redactor *r, const json_t *value)
{
    if (json_is_object (value)) {
        json_t *out = json_object (), *member;
        const char *key;
        json_object_foreach ((json_t *)(uintptr_t)value, key, member)
        {
            _cleanup_free_ char *clean = redactor_apply (r, key);
            json_object_set_new (out, clean, redacted (r, member));
        }
        return out;
    }
    if (json_is_array (value)) {
        json_t *out = json_array ();
        for (size_t i = 0; i < json_array_size (value); i++)
            json_array_append_new (out, redacted (r, json_array_get (value, i)));
        return out;
    }
    if (json_is_string (value)) {
        _cleanup_free_ char *clean = redactor_apply (r, json_string_value (value));
        return json_string (clean);
    }
    if (json_is_number (value)) {
        _cleanup_free_ char *text = json_text (value, JSON_TEXT_ORDERED);
        _cleanup_free_ char *clean = redactor_apply (r, text);
        if (strcmp (text, clean) != 0)
            return json_string ("[redacted]");
    }
    return json_incref ((json_t *)(uintptr_t)value);
}

char *
redact_json_text (struct redactor *r, const char *text)
{
    _cleanup_json_ json_t *value = json_loads (text, JSON_DECODE_ANY, NULL);
    if (! value) {
        _cleanup_free_ char *plain = redactor_apply (r, text);
        struct buf out = { 0 };
        json_append_string (&out, plain, strlen (plain));
        return buf_steal (&out);
    }
    _cleanup_json_ json_t *clean = redacted (r, value);
    return json_text (clean, JSON_TEXT_ORDERED);
}
