/* SPDX-License-Identifier: Apache-2.0
 *
 * Where two texts part: the byte, the JSON pointer, and what stands there.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

/* The first byte that differs; the shorter length when one is the beginning of the other. */
size_t differ_offset (const char *a, size_t a_len, const char *b, size_t b_len);
/* "/2/description": the first place where two texts of JSON differ, "" when they are one kind of
 * leaf, equal, or one is no JSON. Object members are looked at in name order. Owned. */
char *differ_pointer_text (const char *a, size_t a_len, const char *b, size_t b_len);
/* Up to 60 characters on both sides of that byte, cut on character boundaries. Owned. */
char *differ_excerpt (const char *text, size_t len, size_t offset);
