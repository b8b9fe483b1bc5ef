/* SPDX-License-Identifier: Apache-2.0
 *
 * Scores of a session: hooks/eval.jsonl, what it adds up to, and two of them side by side
 * (spec/records.md 9).
 *
 * Written by a scoring hook, so nothing of it is trusted: a line that is not what it should be is
 * E-EVAL-001 naming <path>:<line>.
 */
#pragma once

#include "base/error.h"
#include "base/json.h"

struct eval_scorer {
    char *name;
    uint64_t pass, total;
};

struct eval_event {
    uint64_t turn;
    char *event_type, *scorer;
    bool is_pass, has_score;
    double score;
    size_t line;
};

struct eval_scores {
    char *path;
    struct eval_scorer *scorers; /* by name */
    size_t scorer_count, scorer_cap;
    struct eval_event *events; /* in file order */
    size_t event_count, event_cap;
    json_t *dataset_run; /* the last one, or NULL */
};

/* Reads a file. NULL with E-IO-001 (absent, named), E-IO-003 or E-EVAL-001. */
struct eval_scores *eval_read (const char *path, struct mur_error **err);
/* The same from bytes; <path> is for messages. */
void eval_free (struct eval_scores *s);
DEFINE_CLEANUP (struct eval_scores, eval_free)
#define _cleanup_eval_ _cleanup_ (eval_freep)

/* "pass", "fail" or "no_scores": what the hook said, else what the events say. Borrowed. */
const char *eval_overall (const struct eval_scores *s);
void eval_show (const struct eval_scores *s, struct buf *out);
/* Owned. */
json_t *eval_json (const struct eval_scores *s);
void eval_compare (const struct eval_scores *a, const struct eval_scores *b, struct buf *out);
