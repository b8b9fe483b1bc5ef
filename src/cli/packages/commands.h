/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands about making, sharing and installing artifacts: one source each, a row in the table
 * of commands.
 */
#pragma once

#include "cli/line/command.h"

cli_run_fn cmd_build;
cli_run_fn cmd_index;
cli_run_fn cmd_install;
cli_run_fn cmd_list;
cli_run_fn cmd_new;
cli_run_fn cmd_precompile;
cli_run_fn cmd_publish;
cli_run_fn cmd_search;
cli_run_fn cmd_sign;
cli_run_fn cmd_trust_add;
cli_run_fn cmd_trust_keygen;
cli_run_fn cmd_trust_list;
cli_run_fn cmd_trust_remove;
cli_run_fn cmd_verify;
