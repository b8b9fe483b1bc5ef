/* SPDX-License-Identifier: Apache-2.0
 *
 * The page of this host's sessions: its row in the table of commands.
 */
#pragma once

#include "cli/line/command.h"

cli_run_fn cmd_ui;
