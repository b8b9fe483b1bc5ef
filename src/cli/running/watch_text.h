/* SPDX-License-Identifier: Apache-2.0
 *
 * Text of an agent as a terminal may be given it: measured, shortened, wrapped, and without
 * anything that moves a cursor or a colour.
 */
#pragma once

#include "base/buf.h"

/* The length of one character of text; broken bytes count one each. */
size_t text_char_len (const char *c);
/* A control character, C1 included: what a terminal would obey. */
bool text_is_control (const char *c);
/* Appends text for a terminal: line ends are followed by <indent>, tabs kept, other controls "·".
 */
void text_put_safe (struct buf *out, const char *text, const char *indent);
/* The first line that is not blank nor a fence, cut to <columns>. Owned. */
char *text_first_words (const char *text, size_t columns);
size_t text_columns (const char *word, size_t len);
void text_put_wrapped (struct buf *out, const char *text);
