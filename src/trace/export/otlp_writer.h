/* SPDX-License-Identifier: Apache-2.0
 *
 * OTLP's two encodings from one description: each call writes a field of a protobuf message, or the
 * same field under its JSON name. What is written twice cannot differ, because it is written once.
 *
 * Always true: a begun message or list is ended; text is well-formed UTF-8 in both encodings
 * (malformed bytes become U+FFFD). A message holds less than 256 MiB.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

#define OTLP_DEPTH_MAX 16

enum otlp_encoding {
    OTLP_PROTOBUF,
    OTLP_JSON,
};

struct otlp_writer {
    enum otlp_encoding encoding;
    struct buf out;
    struct {
        unsigned field;   /* protobuf: of a list's items */
        size_t length_at; /* protobuf: where the length of the open message stands */
        bool has_items;   /* JSON: a comma comes first */
    } open[OTLP_DEPTH_MAX];
    size_t depth;
};

/* The outermost message. <w> is zeroed but for its encoding. */
void otlp_begin (struct otlp_writer *w);
void otlp_end (struct otlp_writer *w);
/* A message as a field of the open one. */
void otlp_message_begin (struct otlp_writer *w, unsigned field, const char *name);
void otlp_message_end (struct otlp_writer *w);
/* A repeated message: each item between otlp_item_begin and otlp_item_end. */
void otlp_list_begin (struct otlp_writer *w, unsigned field, const char *name);
void otlp_item_begin (struct otlp_writer *w);
void otlp_item_end (struct otlp_writer *w);
void otlp_list_end (struct otlp_writer *w);

void otlp_string (struct otlp_writer *w, unsigned field, const char *name, const char *text);
/* An id given as hex digits: bytes in protobuf, the digits in JSON. */
void otlp_id (struct otlp_writer *w, unsigned field, const char *name, const char *hex);
void otlp_bool (struct otlp_writer *w, unsigned field, const char *name, bool value);
void otlp_enum (struct otlp_writer *w, unsigned field, const char *name, unsigned value);
void otlp_int (struct otlp_writer *w, unsigned field, const char *name, int64_t value);
void otlp_fixed32 (struct otlp_writer *w, unsigned field, const char *name, uint32_t value);
void otlp_fixed64 (struct otlp_writer *w, unsigned field, const char *name, uint64_t value);
void otlp_sfixed64 (struct otlp_writer *w, unsigned field, const char *name, int64_t value);
void otlp_double (struct otlp_writer *w, unsigned field, const char *name, double value);
/* Packed in protobuf, a list of decimal texts or of numbers in JSON. */
void otlp_fixed64s (struct otlp_writer *w, unsigned field, const char *name, const uint64_t *values,
                    size_t count);
void otlp_doubles (struct otlp_writer *w, unsigned field, const char *name, const double *values,
                   size_t count);
