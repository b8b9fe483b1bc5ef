/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur run` with somebody looking on: what an evaluation does around a launch.
 */
#pragma once

#include "cli/line/args.h"
#include "session/launch.h"

struct run_steps {
    const char *case_id;
    bool may_write_lock;
    /* Staged, not launched. False refuses the launch. */
    bool (*staged) (void *ctx, struct session *s, struct mur_error **err);
    /* The launch is over and nothing of it runs. */
    void (*ended) (void *ctx, struct session *s);
    void *ctx;
};

/* Runs the parsed command line of `mur run` without a word on stdout. *ending is the status word's.
 */
bool run_with_steps (const struct cli_args *args, const struct run_steps *steps,
                     enum session_ending *ending, struct mur_error **err);
