/* SPDX-License-Identifier: Apache-2.0
 *
 * One parsed line, as the command that runs asks it.
 */
#pragma once

#include "base/cleanup.h"
#include "cli/line/command.h"

/* One parsed line. Option and positional names are those of the table; asking for one that is not
 * there is a bug (abort). */
bool cli_has (const struct cli_args *args, const char *option);
/* The value, the fallback, or NULL. For CLI_VALUE_OR_NONE given bare: none_value. Borrowed from
 * argv or the table. */
const char *cli_value (const struct cli_args *args, const char *option);
/* The value of a number option that was given or has a fallback. */
uint64_t cli_number (const struct cli_args *args, const char *option);
/* The first value of a positional, or NULL. */
const char *cli_positional (const struct cli_args *args, const char *name);
/* All values of a repeated positional. Borrowed, not NULL-terminated. */
const char *const *cli_positionals (const struct cli_args *args, const char *name, size_t *count);
const struct cli_command *cli_command_of (const struct cli_args *args);
/* The table the line was read against: for a command that reads further lines itself. */
const struct cli_table *cli_table_of (const struct cli_args *args);
void cli_args_free (struct cli_args *args);
DEFINE_CLEANUP (struct cli_args, cli_args_free)
