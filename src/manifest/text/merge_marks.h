/* SPDX-License-Identifier: Apache-2.0
 *
 * The marks a merge of two branches leaves in a text, and the text as either side has it.
 */
#pragma once

#include "base/buf.h"

/* The 1-based line of the first conflict mark; 0: there is none. */
size_t merge_mark_line (const char *text, size_t len);

enum merge_side {
    MERGE_OURS,   /* above ======= */
    MERGE_THEIRS, /* below it */
};

/* Appends the whole text as this side has it. */
void merge_side_put (struct buf *out, const char *text, size_t len, enum merge_side side);
