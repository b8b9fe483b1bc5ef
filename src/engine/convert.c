/* SPDX-License-Identifier: Apache-2.0
 *
 * Values between C's plain trees and the engine's owned ones.
 *
 * Always true: what is handed to the engine is valid (UTF-8 text, real characters), since the
 * engine aborts on anything else.
 */
#include "engine/internal.h"

#include <string.h>

/* Length of the well-formed UTF-8 character at s, 0 when there is none. */
static size_t
character_at (const char *s, size_t len)
{
    for (size_t n = 1; n <= 4 && n <= len; n++)
        if (utf8_is_valid (s, n))
            return n;
    return 0;
}

static void
name_to_wasm (const char *s, size_t len, wasm_name_t *out)
{
    if (utf8_is_valid (s, len)) {
        wasm_byte_vec_new (out, len, s);
        return;
    }
    _cleanup_buf_ struct buf clean = { 0 };
    for (size_t i = 0; i < len;) {
        size_t n = character_at (s + i, len - i);
        if (n > 0)
            buf_append (&clean, s + i, n);
        else
            buf_puts (&clean, "\xef\xbf\xbd");
        i += n > 0 ? n : 1;
    }
    wasm_byte_vec_new (out, clean.len, clean.data);
}

static uint32_t
character_to_wasm (uint64_t c)
{
    return c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff) ? 0xfffd : (uint32_t)c;
}

static wasmtime_component_val_t *
box_to_wasm (const struct value *v)
{
    if (! v)
        return NULL;
    wasmtime_component_val_t inner = { 0 };
    convert_to_wasm (v, &inner);
    return wasmtime_component_val_new (&inner);
}

static void
record_to_wasm (const struct value *v, wasmtime_component_valrecord_t *out)
{
    wasmtime_component_valrecord_new_uninit (out, v->record.len);
    for (size_t i = 0; i < v->record.len; i++) {
        const struct value_field *field = &v->record.fields[i];
        name_to_wasm (field->name, strlen (field->name), &out->data[i].name);
        convert_to_wasm (&field->value, &out->data[i].val);
    }
}

static void
flags_to_wasm (const struct value *v, wasmtime_component_valflags_t *out)
{
    wasmtime_component_valflags_new_uninit (out, v->list.len);
    for (size_t i = 0; i < v->list.len; i++)
        name_to_wasm (v->list.items[i].string.data, v->list.items[i].string.len, &out->data[i]);
}

void
convert_to_wasm (const struct value *v, wasmtime_component_val_t *out)
{
    memset (out, 0, sizeof *out);
    out->kind = (wasmtime_component_valkind_t)v->kind; /* the two lists are in one order */
    switch (v->kind) {
    case VALUE_BOOL:
        out->of.boolean = v->boolean;
        break;
    case VALUE_S8:
        out->of.s8 = (int8_t)v->s;
        break;
    case VALUE_U8:
        out->of.u8 = (uint8_t)v->u;
        break;
    case VALUE_S16:
        out->of.s16 = (int16_t)v->s;
        break;
    case VALUE_U16:
        out->of.u16 = (uint16_t)v->u;
        break;
    case VALUE_S32:
        out->of.s32 = (int32_t)v->s;
        break;
    case VALUE_U32:
        out->of.u32 = (uint32_t)v->u;
        break;
    case VALUE_S64:
        out->of.s64 = v->s;
        break;
    case VALUE_U64:
        out->of.u64 = v->u;
        break;
    case VALUE_F32:
        out->of.f32 = (float)v->f;
        break;
    case VALUE_F64:
        out->of.f64 = v->f;
        break;
    case VALUE_CHAR:
        out->of.character = character_to_wasm (v->u);
        break;
    case VALUE_STRING:
        name_to_wasm (v->string.data, v->string.len, &out->of.string);
        break;
    case VALUE_LIST:
        wasmtime_component_vallist_new_uninit (&out->of.list, v->list.len);
        for (size_t i = 0; i < v->list.len; i++)
            convert_to_wasm (&v->list.items[i], &out->of.list.data[i]);
        break;
    case VALUE_TUPLE:
        wasmtime_component_valtuple_new_uninit (&out->of.tuple, v->list.len);
        for (size_t i = 0; i < v->list.len; i++)
            convert_to_wasm (&v->list.items[i], &out->of.tuple.data[i]);
        break;
    case VALUE_RECORD:
        record_to_wasm (v, &out->of.record);
        break;
    case VALUE_VARIANT:
        name_to_wasm (v->variant.name, strlen (v->variant.name), &out->of.variant.discriminant);
        out->of.variant.val = box_to_wasm (v->variant.payload);
        break;
    case VALUE_ENUM:
        name_to_wasm (v->variant.name, strlen (v->variant.name), &out->of.enumeration);
        break;
    case VALUE_OPTION:
        out->of.option = box_to_wasm (v->option);
        break;
    case VALUE_RESULT:
        out->of.result.is_ok = v->result.is_ok;
        out->of.result.val = box_to_wasm (v->result.payload);
        break;
    case VALUE_FLAGS:
        flags_to_wasm (v, &out->of.flags);
        break;
    }
}

static const char *
name_from_wasm (const wasm_name_t *name, struct arena *arena)
{
    return arena_strndup (arena, name->size ? name->data : "", name->size);
}

/* *out = NULL for an absent value. */
static bool
box_from_wasm (const wasmtime_component_val_t *v, struct arena *arena, struct value **out)
{
    *out = NULL;
    if (! v)
        return true;
    *out = arena_new0 (arena, struct value);
    return convert_from_wasm (v, arena, *out);
}

static bool
items_from_wasm (const wasmtime_component_val_t *items, size_t len, struct arena *arena,
                 struct value *out)
{
    out->list.len = len;
    out->list.items = len ? arena_new_array (arena, struct value, len) : NULL;
    for (size_t i = 0; i < len; i++)
        if (! convert_from_wasm (&items[i], arena, &out->list.items[i]))
            return false;
    return true;
}

static bool
record_from_wasm (const wasmtime_component_valrecord_t *r, struct arena *arena, struct value *out)
{
    out->record.len = r->size;
    out->record.fields = r->size ? arena_new_array (arena, struct value_field, r->size) : NULL;
    for (size_t i = 0; i < r->size; i++) {
        out->record.fields[i].name = name_from_wasm (&r->data[i].name, arena);
        if (! convert_from_wasm (&r->data[i].val, arena, &out->record.fields[i].value))
            return false;
    }
    return true;
}

static void
flags_from_wasm (const wasmtime_component_valflags_t *f, struct arena *arena, struct value *out)
{
    out->list.len = f->size;
    out->list.items = f->size ? arena_new_array (arena, struct value, f->size) : NULL;
    for (size_t i = 0; i < f->size; i++)
        out->list.items[i] = value_string_n (arena, f->data[i].data, f->data[i].size);
}

bool
convert_from_wasm (const wasmtime_component_val_t *v, struct arena *arena, struct value *out)
{
    *out = (struct value){ .kind = (enum value_kind)v->kind };
    switch (v->kind) {
    case WASMTIME_COMPONENT_BOOL:
        out->boolean = v->of.boolean;
        return true;
    case WASMTIME_COMPONENT_S8:
        out->s = v->of.s8;
        return true;
    case WASMTIME_COMPONENT_U8:
        out->u = v->of.u8;
        return true;
    case WASMTIME_COMPONENT_S16:
        out->s = v->of.s16;
        return true;
    case WASMTIME_COMPONENT_U16:
        out->u = v->of.u16;
        return true;
    case WASMTIME_COMPONENT_S32:
        out->s = v->of.s32;
        return true;
    case WASMTIME_COMPONENT_U32:
        out->u = v->of.u32;
        return true;
    case WASMTIME_COMPONENT_S64:
        out->s = v->of.s64;
        return true;
    case WASMTIME_COMPONENT_U64:
        out->u = v->of.u64;
        return true;
    case WASMTIME_COMPONENT_F32:
        out->f = (double)v->of.f32;
        return true;
    case WASMTIME_COMPONENT_F64:
        out->f = v->of.f64;
        return true;
    case WASMTIME_COMPONENT_CHAR:
        out->u = v->of.character;
        return true;
    case WASMTIME_COMPONENT_STRING:
        out->string.data = name_from_wasm (&v->of.string, arena);
        out->string.len = v->of.string.size;
        return true;
    case WASMTIME_COMPONENT_LIST:
        return items_from_wasm (v->of.list.data, v->of.list.size, arena, out);
    case WASMTIME_COMPONENT_TUPLE:
        return items_from_wasm (v->of.tuple.data, v->of.tuple.size, arena, out);
    case WASMTIME_COMPONENT_RECORD:
        return record_from_wasm (&v->of.record, arena, out);
    case WASMTIME_COMPONENT_VARIANT:
        out->variant.name = name_from_wasm (&v->of.variant.discriminant, arena);
        return box_from_wasm (v->of.variant.val, arena, &out->variant.payload);
    case WASMTIME_COMPONENT_ENUM:
        out->variant.name = name_from_wasm (&v->of.enumeration, arena);
        return true;
    case WASMTIME_COMPONENT_OPTION:
        return box_from_wasm (v->of.option, arena, &out->option);
    case WASMTIME_COMPONENT_RESULT:
        out->result.is_ok = v->of.result.is_ok;
        return box_from_wasm (v->of.result.val, arena, &out->result.payload);
    case WASMTIME_COMPONENT_FLAGS:
        flags_from_wasm (&v->of.flags, arena, out);
        return true;
    default:
        return false;
    }
}
