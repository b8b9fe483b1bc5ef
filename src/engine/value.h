/* SPDX-License-Identifier: Apache-2.0
 *
 * Component-model values as C sees them: one plain tree, so that host/ never includes wasmtime.h.
 *
 * Trees are built in an arena the caller owns; nothing in a tree is freed on its own. Strings are
 * UTF-8 with a length and may hold NUL bytes; they are NUL-terminated besides.
 */
#pragma once

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum value_kind {
    VALUE_BOOL,
    VALUE_S8,
    VALUE_U8,
    VALUE_S16,
    VALUE_U16,
    VALUE_S32,
    VALUE_U32,
    VALUE_S64,
    VALUE_U64,
    VALUE_F32,
    VALUE_F64,
    VALUE_CHAR,
    VALUE_STRING,
    VALUE_LIST,
    VALUE_RECORD,
    VALUE_TUPLE,
    VALUE_VARIANT,
    VALUE_ENUM,
    VALUE_OPTION,
    VALUE_RESULT,
    VALUE_FLAGS,
};

struct value_field;

struct value {
    enum value_kind kind;
    union {
        bool boolean;
        int64_t s;  /* s8..s64 */
        uint64_t u; /* u8..u64, char */
        double f;   /* f32, f64 */
        struct {
            const char *data;
            size_t len;
        } string;
        struct {
            struct value *items;
            size_t len;
        } list; /* list and tuple; for flags the set names as strings */
        struct {
            struct value_field *fields;
            size_t len;
        } record;
        struct {
            const char *name;      /* case of a variant or enum */
            struct value *payload; /* NULL when the case has none; always NULL for an enum */
        } variant;
        struct value *option; /* NULL = none */
        struct {
            bool is_ok;
            struct value *payload; /* NULL when that side has no type */
        } result;
    };
};

struct value_field {
    const char *name;
    struct value value;
};

struct value value_bool (bool b);
struct value value_s32 (int32_t v);
struct value value_u32 (uint32_t v);
struct value value_u64 (uint64_t v);
struct value value_f64 (double v);
struct value value_string (struct arena *a, const char *s); /* copies */
struct value value_string_n (struct arena *a, const char *s, size_t len);
/* some(string), or none when s is NULL. */
struct value value_option_string (struct arena *a, const char *s);
struct value value_some (struct arena *a, struct value payload);
struct value value_none (void);
struct value value_enum (const char *name);                           /* borrowed: a literal */
struct value value_ok (struct arena *a, const struct value *payload); /* payload may be NULL */
struct value value_err (struct arena *a, const struct value *payload);
struct value value_list (struct arena *a, const struct value *items, size_t len);
struct value value_tuple (struct arena *a, const struct value *items, size_t len);
/* A record from (name, value) pairs, in the order of the WIT text. */
struct value value_record (struct arena *a, const struct value_field *fields, size_t len);

/* The member of a record, or NULL. */
const struct value *value_field (const struct value *record, const char *name);
/* The string of a string or of some(string); NULL for none or another kind. *len may be NULL. */
const char *value_text (const struct value *v, size_t *len);
