/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads argv against the command table.
 *
 * Always true: a usage error leaves stdout empty, says what is wrong in one line, at most one hint,
 * and the usage line; help and version go to stdout. Arguments are judged from left to right,
 * relations between them last.
 */
#pragma once

#include "cli/line/args.h"

enum cli_outcome {
    CLI_RUN,        /* *args is filled */
    CLI_SHOWN,      /* help or version went to stdout */
    CLI_USAGE_ERROR /* the message went to stderr; exit 2 */
};

/* Reads argv (argv[0] is the program). *args is owned and freed with cli_args_free; it borrows from
 * argv and the table. */
enum cli_outcome
cli_parse (const struct cli_table *table, int argc, char *const *argv, struct cli_args **args);
