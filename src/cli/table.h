/* SPDX-License-Identifier: Apache-2.0
 *
 * The command table: everything a person can type (spec/cli.md 12).
 *
 * A command whose run is NULL is known and parsed, and says that this version cannot do it.
 */
#pragma once

#include "cli/line/command.h"

extern const struct cli_table cli_table;
