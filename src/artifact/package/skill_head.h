/* SPDX-License-Identifier: Apache-2.0
 *
 * The head of a SKILL.md: what the skill says of itself to whoever decides when to read it.
 *
 * Heads are written by hand for many products, so a head that is no YAML (an unquoted colon, a tab)
 * still gives its lines as text.
 */
#pragma once

#include "base/buf.h"

/* What a skill is for, on one line: the description of its head, else the first line with a word in
 * its body. NULL when there is none, or the text is no UTF-8. The caller owns it. */
char *skill_head_description (const char *text, size_t len);
