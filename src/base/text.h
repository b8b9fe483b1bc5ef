/* SPDX-License-Identifier: Apache-2.0
 *
 * Texts as people's programs write them: blanks around them (ASCII white space: blank, tab, LF, VT,
 * FF, CR), a byte-order mark before them, or in UTF-16.
 *
 * What is read from a person (a task, `.env`, SKILL.md) goes through text_form_normalise once, so
 * that everything behind it sees UTF-8 without a mark.
 */
#pragma once

#include "base/buf.h"

/* True also for NULL. */
bool text_is_blank (const char *text);
/* Where the text begins without leading blanks, and in *len how far it goes without trailing ones.
 */
const char *text_inner (const char *text, size_t *len);
/* A copy of that. Owned. */
char *text_trimmed (const char *text);

/* Makes UTF-8 of a text in place: a UTF-8 mark is dropped; UTF-16 with a mark, or recognised by the
 * NUL beside its first character, is converted (a half surrogate pair becomes U+FFFD). Anything
 * else is left as it is. */
void text_form_normalise (struct buf *text);
