/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of the commands of `mur trace`, for the table of commands.
 */
#pragma once

#include "cli/line/command.h"

extern const struct cli_option cli_trace_show_options[];
extern const struct cli_option cli_trace_fetch_options[];
extern const struct cli_option cli_trace_steps_options[];
extern const struct cli_option cli_trace_report_options[];
extern const struct cli_option cli_trace_diff_options[];
extern const struct cli_option cli_trace_export_options[];
