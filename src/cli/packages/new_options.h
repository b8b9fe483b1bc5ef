/* SPDX-License-Identifier: Apache-2.0
 *
 * What `mur new` takes, and which of it goes together (spec/cli.md 4).
 */
#pragma once

#include "cli/line/command.h"

extern const struct cli_option cli_new_options[];
/* What is wrong with the words given, owned; NULL: nothing. */
char *cli_new_check (const struct cli_args *args);
