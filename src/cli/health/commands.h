/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands about this installation: one source each, a row in the table of commands.
 */
#pragma once

#include "cli/line/command.h"

cli_run_fn cmd_config_set, cmd_config_get, cmd_config_list, cmd_config_unset, cmd_config_path,
    cmd_beta_list, cmd_beta_set;
cli_run_fn cmd_completions;
cli_run_fn cmd_doctor;
cli_run_fn cmd_explain;
cli_run_fn cmd_self;
cli_run_fn cmd_version;
