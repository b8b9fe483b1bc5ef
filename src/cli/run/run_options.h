/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of the command table that is `mur run`'s (spec/cli.md 2): its options are as many as all
 * others'.
 */
#pragma once

#include "cli/line/command.h"

extern const struct cli_option cli_run_options[],
    cli_eval_run_options[]; /* ends with a NULL name */
/* A launcher's word on what the work folder is a copy of is the whole report, or a usage error
 * (owned). */
char *cli_run_check (const struct cli_args *args);
