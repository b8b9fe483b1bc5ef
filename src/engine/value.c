/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/value.h"

#include <string.h>

struct value
value_bool (bool b)
{
    return (struct value){ .kind = VALUE_BOOL, .boolean = b };
}

struct value
value_s32 (int32_t v)
{
    return (struct value){ .kind = VALUE_S32, .s = v };
}

struct value
value_u32 (uint32_t v)
{
    return (struct value){ .kind = VALUE_U32, .u = v };
}

struct value
value_u64 (uint64_t v)
{
    return (struct value){ .kind = VALUE_U64, .u = v };
}

struct value
value_f64 (double v)
{
    return (struct value){ .kind = VALUE_F64, .f = v };
}

struct value
value_string_n (struct arena *a, const char *s, size_t len)
{
    return (struct value){ .kind = VALUE_STRING, .string = { arena_strndup (a, s, len), len } };
}

struct value
value_string (struct arena *a, const char *s)
{
    return value_string_n (a, s, strlen (s));
}

struct value
value_none (void)
{
    return (struct value){ .kind = VALUE_OPTION };
}

static struct value *
boxed (struct arena *a, const struct value *v)
{
    if (! v)
        return NULL;
    struct value *box = arena_new0 (a, struct value);
    *box = *v;
    return box;
}

struct value
value_some (struct arena *a, struct value payload)
{
    return (struct value){ .kind = VALUE_OPTION, .option = boxed (a, &payload) };
}

struct value
value_option_string (struct arena *a, const char *s)
{
    return s ? value_some (a, value_string (a, s)) : value_none ();
}

struct value
value_enum (const char *name)
{
    return (struct value){ .kind = VALUE_ENUM, .variant = { name, NULL } };
}

struct value
value_ok (struct arena *a, const struct value *payload)
{
    return (struct value){ .kind = VALUE_RESULT, .result = { true, boxed (a, payload) } };
}

struct value
value_err (struct arena *a, const struct value *payload)
{
    return (struct value){ .kind = VALUE_RESULT, .result = { false, boxed (a, payload) } };
}

static struct value
sequence (struct arena *a, enum value_kind kind, const struct value *items, size_t len)
{
    struct value v = { .kind = kind };
    v.list.len = len;
    if (len > 0) {
        v.list.items = arena_new_array (a, struct value, len);
        memcpy (v.list.items, items, len * sizeof *items);
    }
    return v;
}

struct value
value_list (struct arena *a, const struct value *items, size_t len)
{
    return sequence (a, VALUE_LIST, items, len);
}

struct value
value_tuple (struct arena *a, const struct value *items, size_t len)
{
    return sequence (a, VALUE_TUPLE, items, len);
}

struct value
value_record (struct arena *a, const struct value_field *fields, size_t len)
{
    struct value v = { .kind = VALUE_RECORD };
    v.record.len = len;
    v.record.fields = arena_new_array (a, struct value_field, len);
    memcpy (v.record.fields, fields, len * sizeof *fields);
    return v;
}

const struct value *
value_field (const struct value *record, const char *name)
{
    if (! record || record->kind != VALUE_RECORD)
        return NULL;
    for (size_t i = 0; i < record->record.len; i++)
        if (strcmp (record->record.fields[i].name, name) == 0)
            return &record->record.fields[i].value;
    return NULL;
}

const char *
value_text (const struct value *v, size_t *len)
{
    if (v && v->kind == VALUE_OPTION)
        v = v->option;
    if (! v || v->kind != VALUE_STRING) {
        if (len)
            *len = 0;
        return NULL;
    }
    if (len)
        *len = v->string.len;
    return v->string.data;
}
