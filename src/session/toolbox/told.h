/* SPDX-License-Identifier: Apache-2.0
 *
 * What the model was told that does not change by itself: its system prompt, and the tools as the
 * log of the launch last showed them. The task loop's, but for what staging filled.
 */
#pragma once

#include <stdbool.h>

struct session;

void told_new (struct session *s);
void told_free (struct session *s);

/* The operator's prompt (taken over; NULL: none) and where it came from: "none", "cli", "manifest".
 */
void told_set_prompt (struct session *s, char *prompt, const char *source);
/* NULL: none. Borrowed. */
const char *told_prompt (const struct session *s);
const char *told_prompt_source (const struct session *s);
/* Keeps this tool array as the last that was logged; false: it is the one already. */
bool told_note_tools (struct session *s, const char *tools_text);
/* Keeps that a person was told of something about this tool; false: they were told before. */
bool told_note_warning (struct session *s, const char *tool);
