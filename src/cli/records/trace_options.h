/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of `mur trace show` and `mur trace export`.
 */
#pragma once

#include "cli/line/command.h"

extern const struct cli_option cli_trace_show_options[];
extern const struct cli_option cli_trace_diff_options[];
extern const struct cli_option cli_trace_export_options[];
