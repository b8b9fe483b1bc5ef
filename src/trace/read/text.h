/* SPDX-License-Identifier: Apache-2.0
 *
 * How reports write things (records.md 8, "Writing"): headings, labels, durations, counts, hashes.
 */
#pragma once

#include "base/buf.h"
#include "base/json.h"

/* A report under way: { 0 } to begin, report_finish to hand it out. What a trace holds was written
 * by models and tools, so control characters in it never reach a terminal. */
struct report {
    struct buf text;
    bool is_started; /* a section was written: the next is preceded by a blank line */
    bool use_colour;
    /* Takes what is finished while more is to come, so that a long report is never whole in memory;
     * NULL: all of it is kept. */
    void (*put) (const char *data, size_t len);
};

/* Appends the finished text to <out>, coloured or plain, and frees the report. */
void report_finish (struct report *r, bool use_colour, struct buf *out);
/* Hands the rest to <put> and frees the report. */
void report_end (struct report *r);

/* "── <title> ───…" to <columns> columns. */
void report_heading (struct report *r, const char *title);
void report_rule (struct report *r, const char *title, size_t columns);
/* "label:      " padded to 12 columns, or one space after a longer label. */
void report_label (struct report *r, const char *label);
/* A labelled line: "label:      <text>\n". */
void report_line (struct report *r, const char *label, const char *fmt, ...) _printf_ (3, 4);
void report_text (struct report *r, const char *fmt, ...) _printf_ (2, 3);
/* ✓ or ✗. */
void report_mark (struct report *r, bool is_good);

/* Small texts are returned in a struct so that several fit into one printf. */
struct small_text {
    char text[64];
};
/* "12ms", "3.7s". */
struct small_text duration_text (uint64_t ms);
/* "9,000". */
struct small_text count_text (uint64_t n);
/* The first 12 characters and "…" when there are more; "—" for NULL. */
struct small_text short_text (const char *text);
/* "2026-11-29T16:43:51.896Z". */
struct small_text time_text (uint64_t unix_ms);
/* What a message of a record says behind the mark of untrusted text it may begin with. */
const char *text_behind_fence (const char *text);

/* A string member, or "—". Borrowed. */
const char *member_text (const json_t *object, const char *key);
/* A number member, or 0. */
uint64_t member_number (const json_t *object, const char *key);
bool member_has (const json_t *object, const char *key); /* there and not null */
/* The strings of a list member joined by ", " ("" when none). Owned. */
char *member_list (const json_t *object, const char *key);
/* Compact JSON of a member, cut to <limit> characters with "…". Owned. */
char *member_json (const json_t *object, const char *key, size_t limit);
/* <text> cut to <limit> characters (not bytes) with "…". Owned. */
char *cut_text (const char *text, size_t limit);
