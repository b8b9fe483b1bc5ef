/* SPDX-License-Identifier: Apache-2.0
 *
 * Words of strangers on their way to a terminal: what would steer it (control characters, also
 * those of two bytes), turn the order of what is read (direction marks) or is no text at all is
 * shown, not sent.
 */
#pragma once

#include "base/buf.h"

enum printable_style {
    PRINTABLE_HEX,   /* \x1b, \x9b, \u202e */
    PRINTABLE_JSON,  /* \x1b, \u009b, \u202e: JSON text stays the same value */
    PRINTABLE_LINE,  /* \n, \t, \x1b, \u202e: a name that stands within a line */
    PRINTABLE_BLANK, /* a blank for controls (tab and newline too), \u202e: for columns of a table
                      */
};

/* Appends <len> bytes of text; tab and newline pass but for PRINTABLE_LINE and _BLANK. */
void
buf_append_printable (struct buf *out, const char *text, size_t len, enum printable_style style);
enum text_kind {
    TEXT_NAME,  /* one line without control characters or direction marks */
    TEXT_LINES, /* tab, newline and carriage return may stand in it, too */
    TEXT_PROSE, /* and direction marks */
};
/* True when a text holds none of these characters but those its kind may. */
bool text_is_printable (const char *text, enum text_kind kind);
/* Whether the character at <c> (NUL-terminated text) is a direction mark; all have three bytes but
 * U+061C, which has two. */
bool text_is_direction_mark (const char *c);
/* True when the environment's locale names characters other than UTF-8: a terminal of it shows our
 * signs as rubbish. An unset locale says nothing. */
bool locale_lacks_utf8 (void);
/* Appends <len> bytes with the signs that our own reports draw with (arrows, ticks, lines, dashes)
 * as one ASCII character each, so that columns stay; all else as it is. */
void buf_append_ascii_signs (struct buf *out, const char *text, size_t len);
