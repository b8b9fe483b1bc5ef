/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands about MCP: one source each, a row in the table of commands.
 */
#pragma once

#include "cli/line/command.h"

cli_run_fn cmd_mcp_add;
cli_run_fn cmd_mcp_call;
cli_run_fn cmd_mcp_connect;
cli_run_fn cmd_mcp_diff;
cli_run_fn cmd_mcp_list;
cli_run_fn cmd_mcp_login;
cli_run_fn cmd_mcp_logout;
cli_run_fn cmd_mcp_serve;
cli_run_fn cmd_mcp_show;
cli_run_fn cmd_mcp_update;
