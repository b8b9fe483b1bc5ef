/* SPDX-License-Identifier: Apache-2.0
 *
 * A command line into words as a POSIX shell splits it, nothing expanded: the one splitter of tool
 * calls, plans, done checks and evaluations.
 */
#pragma once

#include "base/buf.h"

/* Appends the words of <command> to <words>; an empty quoted word is one, and
 * $'...' spells characters. False when a quote is not
 * closed: what was appended means nothing then. */
bool words_split (const char *command, struct strv *words);

/* What a refusal says of a line that does not split. */
extern const char words_unclosed[];
