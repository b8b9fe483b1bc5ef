/* SPDX-License-Identifier: Apache-2.0
 *
 * What a parsed line holds: written by the parser, read through args.h.
 */
#pragma once

#include "cli/line/args.h"

#define MOST_OPTIONS     48
#define MOST_POSITIONALS 4

struct cli_args {
    const struct cli_table *table;
    const struct cli_command *command;
    bool is_given[MOST_OPTIONS];
    const char *values[MOST_OPTIONS];
    uint64_t numbers[MOST_OPTIONS];
    const char **words; /* positionals in order, the repeated one last */
    size_t word_count;
};
