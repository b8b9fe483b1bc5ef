/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of the commands about MCP, for the table of commands.
 */
#pragma once

#include "cli/line/command.h"

/* A row without a name ends each. */
extern const struct cli_option cli_mcp_add_options[];
extern const struct cli_option cli_mcp_update_options[];
extern const struct cli_option cli_mcp_list_options[];
extern const struct cli_option cli_mcp_show_options[];
extern const struct cli_option cli_mcp_diff_options[];
extern const struct cli_option cli_mcp_call_options[];
extern const struct cli_option cli_mcp_login_options[];
extern const struct cli_option cli_mcp_logout_options[];
extern const struct cli_option cli_mcp_connect_options[];
extern const struct cli_option cli_mcp_serve_options[];
