/* SPDX-License-Identifier: Apache-2.0
 *
 * What a session has used, read from its trace as it grows.
 */
#pragma once

#include "base/json.h"

struct token_tally {
    int fd; /* of the trace; -1: there is none to read */
    struct buf line;
    uint64_t input, output;                 /* as providers counted them, over all calls */
    uint64_t counted_input, counted_output; /* as the session itself counts, and its end totals */
    uint64_t context;                       /* tokens after the last answer; 0: not known */
    uint64_t budget;                        /* of one request; 0: not known */
    json_t *start;                          /* session_start; NULL until it was read */
};

/* Opens the trace of a records directory; none is no error. */
void token_tally_open (struct token_tally *t, const char *records_dir);
/* Takes in what was added. */
void token_tally_read (struct token_tally *t);
/* "1,234 tokens in, 56 out", or NULL when nothing was counted; a watch view's `spent`. Owned. */
char *token_tally_words (void *tally);
/* The same and how full the context is. Owned. */
char *token_tally_status (struct token_tally *t);
void token_tally_clear (struct token_tally *t);
