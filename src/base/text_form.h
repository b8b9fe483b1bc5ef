/* SPDX-License-Identifier: Apache-2.0
 *
 * Text files as people's programs write them: with a byte-order mark, or in UTF-16.
 *
 * What is read from a person (a task, `.env`, SKILL.md) goes through here once, so that everything
 * behind it sees UTF-8 without a mark.
 */
#pragma once

#include "base/buf.h"

/* Makes UTF-8 of a text in place: a UTF-8 mark is dropped; UTF-16 with a mark, or recognised by the
 * NUL beside its first character, is converted (a half surrogate pair becomes U+FFFD). Anything
 * else is left as it is. */
void text_form_normalise (struct buf *text);
