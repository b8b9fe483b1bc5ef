/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands about what runs now: one source each, a row in the table of commands.
 */
#pragma once

#include "cli/line/command.h"

cli_run_fn cmd_cancel;
cli_run_fn cmd_control_show, cmd_control_set, cmd_control_secret, cmd_control_forget;
cli_run_fn cmd_ps;
cli_run_fn cmd_send, cmd_answer;
cli_run_fn cmd_stop;
cli_run_fn cmd_token;
cli_run_fn cmd_watch;
