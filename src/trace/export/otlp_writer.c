/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/export/otlp_writer.h"

#include "base/json.h"
#include "base/json_write.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum wire_type {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_BYTES = 2,
    WIRE_FIXED32 = 5,
};

/* A message's length is known at its end: four bytes are kept for it, a varint of fixed width. */
#define LENGTH_BYTES 4

static void
put_varint (struct buf *b, uint64_t value)
{
    do {
        unsigned char byte = value & 0x7f;
        value >>= 7;
        buf_putc (b, (char)(byte | (value ? 0x80 : 0)));
    } while (value);
}

static void
put_little_endian (struct buf *b, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        buf_putc (b, (char)(value >> (8 * i) & 0xff));
}

static void
put_tag (struct otlp_writer *w, unsigned field, enum wire_type type)
{
    put_varint (&w->out, (uint64_t)field << 3 | type);
}

static void
put_name (struct otlp_writer *w, const char *name)
{
    if (w->open[w->depth - 1].has_items)
        buf_putc (&w->out, ',');
    w->open[w->depth - 1].has_items = true;
    if (name)
        buf_printf (&w->out, "\"%s\":", name);
}

static void
open_level (struct otlp_writer *w, unsigned field)
{
    assert (w->depth < OTLP_DEPTH_MAX);
    w->open[w->depth].field = field;
    w->open[w->depth].has_items = false;
    w->open[w->depth].length_at = w->out.len;
    w->depth++;
}

/* --- messages --- */

void
otlp_begin (struct otlp_writer *w)
{
    w->depth = 0;
    open_level (w, 0);
    if (w->encoding == OTLP_JSON)
        buf_putc (&w->out, '{');
}

void
otlp_end (struct otlp_writer *w)
{
    w->depth--;
    if (w->encoding == OTLP_JSON)
        buf_putc (&w->out, '}');
}

void
otlp_message_begin (struct otlp_writer *w, unsigned field, const char *name)
{
    if (w->encoding == OTLP_JSON) {
        put_name (w, name);
        buf_putc (&w->out, '{');
        open_level (w, field);
        return;
    }
    put_tag (w, field, WIRE_BYTES);
    open_level (w, field);
    buf_append (&w->out, "\x80\x80\x80", LENGTH_BYTES);
}

void
otlp_message_end (struct otlp_writer *w)
{
    w->depth--;
    if (w->encoding == OTLP_JSON) {
        buf_putc (&w->out, '}');
        return;
    }
    size_t at = w->open[w->depth].length_at;
    size_t len = w->out.len - at - LENGTH_BYTES;
    for (size_t i = 0; i < LENGTH_BYTES; i++)
        w->out.data[at + i] = (char)((len >> (7 * i) & 0x7f) | (i + 1 < LENGTH_BYTES ? 0x80u : 0u));
}

void
otlp_list_begin (struct otlp_writer *w, unsigned field, const char *name)
{
    if (w->encoding == OTLP_JSON) {
        put_name (w, name);
        buf_putc (&w->out, '[');
    }
    open_level (w, field);
}

void
otlp_item_begin (struct otlp_writer *w)
{
    otlp_message_begin (w, w->open[w->depth - 1].field, NULL);
}

void
otlp_item_end (struct otlp_writer *w)
{
    otlp_message_end (w);
}

void
otlp_list_end (struct otlp_writer *w)
{
    w->depth--;
    if (w->encoding == OTLP_JSON)
        buf_putc (&w->out, ']');
}

/* --- fields --- */

void
otlp_string (struct otlp_writer *w, unsigned field, const char *name, const char *text)
{
    size_t len = strlen (text);
    if (w->encoding == OTLP_JSON) {
        put_name (w, name);
        json_append_string (&w->out, text, len);
        return;
    }
    _cleanup_json_ json_t *lossy = NULL;
    if (! utf8_is_valid (text, len)) {
        lossy = json_string_lossy (text, len);
        text = json_string_value (lossy);
        len = json_string_length (lossy);
    }
    put_tag (w, field, WIRE_BYTES);
    put_varint (&w->out, len);
    buf_append (&w->out, text, len);
}

static unsigned
hex_digit (char c)
{
    return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a') + 10;
}

void
otlp_id (struct otlp_writer *w, unsigned field, const char *name, const char *hex)
{
    if (w->encoding == OTLP_JSON) {
        otlp_string (w, field, name, hex);
        return;
    }
    size_t bytes = strlen (hex) / 2;
    put_tag (w, field, WIRE_BYTES);
    put_varint (&w->out, bytes);
    for (size_t i = 0; i < bytes; i++)
        buf_putc (&w->out, (char)(hex_digit (hex[2 * i]) << 4 | hex_digit (hex[2 * i + 1])));
}

/* A 64-bit number is a decimal text in OTLP's JSON. */
static void
json_decimal (struct otlp_writer *w, const char *name, int64_t value)
{
    put_name (w, name);
    buf_printf (&w->out, "\"%lld\"", (long long)value);
}

void
otlp_bool (struct otlp_writer *w, unsigned field, const char *name, bool value)
{
    if (w->encoding == OTLP_JSON) {
        put_name (w, name);
        buf_puts (&w->out, value ? "true" : "false");
        return;
    }
    put_tag (w, field, WIRE_VARINT);
    put_varint (&w->out, value);
}

void
otlp_enum (struct otlp_writer *w, unsigned field, const char *name, unsigned value)
{
    if (w->encoding == OTLP_JSON) {
        put_name (w, name);
        buf_printf (&w->out, "%u", value);
        return;
    }
    put_tag (w, field, WIRE_VARINT);
    put_varint (&w->out, value);
}

void
otlp_int (struct otlp_writer *w, unsigned field, const char *name, int64_t value)
{
    if (w->encoding == OTLP_JSON) {
        json_decimal (w, name, value);
        return;
    }
    put_tag (w, field, WIRE_VARINT);
    put_varint (&w->out, (uint64_t)value);
}

void
otlp_fixed32 (struct otlp_writer *w, unsigned field, const char *name, uint32_t value)
{
    if (w->encoding == OTLP_JSON) {
        otlp_enum (w, field, name, value);
        return;
    }
    put_tag (w, field, WIRE_FIXED32);
    put_little_endian (&w->out, value, 4);
}

void
otlp_fixed64 (struct otlp_writer *w, unsigned field, const char *name, uint64_t value)
{
    if (w->encoding == OTLP_JSON) {
        put_name (w, name);
        buf_printf (&w->out, "\"%llu\"", (unsigned long long)value);
        return;
    }
    put_tag (w, field, WIRE_FIXED64);
    put_little_endian (&w->out, value, 8);
}

void
otlp_sfixed64 (struct otlp_writer *w, unsigned field, const char *name, int64_t value)
{
    if (w->encoding == OTLP_JSON) {
        json_decimal (w, name, value);
        return;
    }
    put_tag (w, field, WIRE_FIXED64);
    put_little_endian (&w->out, (uint64_t)value, 8);
}

static uint64_t
double_bits (double value)
{
    uint64_t bits;
    memcpy (&bits, &value, sizeof bits);
    return bits;
}

void
otlp_double (struct otlp_writer *w, unsigned field, const char *name, double value)
{
    if (w->encoding == OTLP_JSON) {
        put_name (w, name);
        buf_printf (&w->out, "%.17g", value);
        return;
    }
    put_tag (w, field, WIRE_FIXED64);
    put_little_endian (&w->out, double_bits (value), 8);
}

void
otlp_fixed64s (struct otlp_writer *w, unsigned field, const char *name, const uint64_t *values,
               size_t count)
{
    if (w->encoding == OTLP_JSON) {
        put_name (w, name);
        buf_putc (&w->out, '[');
        for (size_t i = 0; i < count; i++)
            buf_printf (&w->out, "%s\"%llu\"", i ? "," : "", (unsigned long long)values[i]);
        buf_putc (&w->out, ']');
        return;
    }
    put_tag (w, field, WIRE_BYTES);
    put_varint (&w->out, count * 8);
    for (size_t i = 0; i < count; i++)
        put_little_endian (&w->out, values[i], 8);
}

void
otlp_doubles (struct otlp_writer *w, unsigned field, const char *name, const double *values,
              size_t count)
{
    if (w->encoding == OTLP_JSON) {
        put_name (w, name);
        buf_putc (&w->out, '[');
        for (size_t i = 0; i < count; i++)
            buf_printf (&w->out, "%s%.17g", i ? "," : "", values[i]);
        buf_putc (&w->out, ']');
        return;
    }
    put_tag (w, field, WIRE_BYTES);
    put_varint (&w->out, count * 8);
    for (size_t i = 0; i < count; i++)
        put_little_endian (&w->out, double_bits (values[i]), 8);
}
