/* SPDX-License-Identifier: Apache-2.0
 *
 * The sections of `mur trace show`, one function each, shared between the show_*.c files alone.
 *
 * A section that has nothing to say writes nothing, heading included, unless the chapter marks it
 * as always there.
 */
#pragma once

#include "trace/read/text.h"
#include "trace/read/text_index.h"
#include "trace/tell/metrics.h"

struct show {
    const struct trace *trace;
    const char *work_root; /* NULL: none */
    struct trace_metrics metrics;
    struct report *report;
};

typedef void show_section_fn (struct show *s);

/* Iterates over the events of one type: for (const struct trace_event *e = NULL; (e = show_next (s,
 * "shell", e));) */
const struct trace_event *
show_next (const struct show *s, const char *type, const struct trace_event *after);
size_t show_count (const struct show *s, const char *type);
/* From the text of a member to the first event of the type that has it. */
void show_index (const struct show *s, const char *type, const char *key, struct text_index *out);
/* How often each of a few words was seen. */
struct word_counts {
    struct strv words;
    size_t *counts;
};
void word_count_add (struct word_counts *c, const char *word);
/* "1 not_found, 2 ok", in word order, owned; the counts are empty afterwards. */
char *word_counts_take (struct word_counts *c);
/* "outcome" members counted: "1 not_found, 2 ok", in name order. Owned. */
char *show_outcomes (const struct show *s, const char *type);
/* "  at turn 3" or "". */
struct small_text show_turn_suffix (const json_t *object);
