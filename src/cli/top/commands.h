/* SPDX-License-Identifier: Apache-2.0
 *
 * What runs on this host, live: its row in the table of commands.
 */
#pragma once

#include "cli/line/command.h"

cli_run_fn cmd_top;
