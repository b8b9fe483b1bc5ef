/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur replay --minimise`: the fewest files and lines a session can begin with and still fail, and
 * the fewest calls, tools and paragraphs of its prompt.
 *
 * Always true: answers of the model are served by place, so no run costs anything; what is kept
 * was seen to fail; an interrupt leaves the best so far.
 */
#pragma once

#include "cli/run/cmd_run.h"
#include "replay/record/record.h"

struct minimise_request {
    const struct cli_table *table;
    struct record *record;
    struct run_replay run; /* its player is made for each run */
    const char *check;     /* exit 0: it still fails */
    uint64_t max_runs;
    const char *into; /* folder the smallest start is left in; not there yet */
    bool is_json;
};

/* E-RPL-001 (no files on record), E-RPL-003 (with everything in place the check does not exit 0),
 * E-IO-003. */
bool minimise (const struct minimise_request *q, struct mur_error **err);
