/* SPDX-License-Identifier: Apache-2.0
 *
 * How the rows of a schema's table are written. For sources that are such tables.
 */
#pragma once

#include "manifest/text/schema.h"

/* The sentence of a row. A program that prints no reference is built without them. */
#ifdef SCHEMA_WITHOUT_DOC
#define DOC(sentence) .doc = NULL
#else
#define DOC(sentence) .doc = (sentence)
#endif

#define KEY_AS(text, block, field, kind, ...)                                                      \
    {                                                                                              \
        .name = (text), .type = (kind), .offset = offsetof (struct block, field), __VA_ARGS__      \
    }
#define KEY(block, field, kind, ...) KEY_AS (#field, block, field, kind, __VA_ARGS__)
/* A key the reader accepts and forgets. */
#define KEY_INERT(text, words_of_it)                                                               \
    {                                                                                              \
        .name = (text), .type = KEY_IGNORED, .flags = KEY_HIDDEN, DOC (words_of_it)                \
    }
#define END                                                                                        \
    {                                                                                              \
        .name = NULL                                                                               \
    }
#define SCHEMA(table, block)                                                                       \
    {                                                                                              \
        .keys = (table), .size = sizeof (struct block)                                             \
    }
