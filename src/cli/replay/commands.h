/* SPDX-License-Identifier: Apache-2.0
 *
 * Running recorded sessions again: rows in the table of commands.
 */
#pragma once

#include "cli/line/command.h"

cli_run_fn cmd_replay, cmd_trace_pack;
