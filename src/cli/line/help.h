/* SPDX-License-Identifier: Apache-2.0
 *
 * Help text, made from the command table.
 */
#pragma once

#include "base/buf.h"
#include "cli/line/command.h"

#define CLI_HELP_WIDTH     96 /* columns a help line may take */
#define CLI_HELP_NARROWEST 40

/* Help of the whole program (topic NULL), a group or a command, appended to out, wrapped to <width>
 * columns. False when there is no such topic. */
bool cli_help (const struct cli_table *table, const char *topic, size_t width, struct buf *out);
/* The one-line usage of a command: "mur trace show [OPTIONS] [SESSION]". Owned. */
char *cli_usage_line (const struct cli_command *c);
