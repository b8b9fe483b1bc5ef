/* SPDX-License-Identifier: Apache-2.0
 *
 * A table of text: columns padded to their widest cell, two spaces between them, nothing after the
 * last.
 */
#pragma once

#include "base/buf.h"

struct text_table {
    struct strv columns;
    struct strv cells; /* row after row */
};

void text_table_column (struct text_table *t, const char *title);
/* Adds the next cell. Rows fill up from the left. */
void text_table_add (struct text_table *t, const char *cell);
bool text_table_is_empty (const struct text_table *t);
/* Title row and rows, on stdout. */
void text_table_print (const struct text_table *t);
void text_table_clear (struct text_table *t);
#define _cleanup_text_table_ _cleanup_ (text_table_clear)
