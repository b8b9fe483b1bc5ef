/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands about what sessions left behind: one source each, a row in the table of commands.
 */
#pragma once

#include "cli/line/command.h"

cli_run_fn cmd_conversation_ls, cmd_conversation_show, cmd_conversation_rm,
    cmd_conversation_truncate;
cli_run_fn cmd_eval_show, cmd_eval_diff;
cli_run_fn cmd_trace_show, cmd_trace_list, cmd_trace_rm;
cli_run_fn cmd_trace_fetch;
cli_run_fn cmd_trace_steps, cmd_trace_diff, cmd_trace_report, cmd_trace_export;
