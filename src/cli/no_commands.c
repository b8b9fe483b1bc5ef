/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands that do nothing, for programs that only read the table: the manual page is written so,
 * and unit tests run so.
 */
#include "cli/chat/commands.h"
#include "cli/deploy/commands.h"
#include "cli/health/commands.h"
#include "cli/mcp/commands.h"
#include "cli/packages/commands.h"
#include "cli/records/commands.h"
#include "cli/replay/commands.h"
#include "cli/run/commands.h"
#include "cli/running/commands.h"
#include "cli/top/commands.h"
#include "cli/ui/commands.h"

#define NOTHING(name)                                                                              \
    int name (const struct cli_args *args, struct mur_error **err)                                 \
    {                                                                                              \
        (void)args;                                                                                \
        (void)err;                                                                                 \
        return CLI_OK;                                                                             \
    }
NOTHING (cmd_run)
NOTHING (cmd_chat)
NOTHING (cmd_top)
NOTHING (cmd_ui)
NOTHING (cmd_build)
NOTHING (cmd_publish)
NOTHING (cmd_precompile)
NOTHING (cmd_install)
NOTHING (cmd_list)
NOTHING (cmd_search)
NOTHING (cmd_sign)
NOTHING (cmd_trust_add)
NOTHING (cmd_trust_keygen)
NOTHING (cmd_trust_list)
NOTHING (cmd_trust_remove)
NOTHING (cmd_verify)
NOTHING (cmd_index)
NOTHING (cmd_deploy_render)
NOTHING (cmd_deploy_check)
NOTHING (cmd_deploy_apply)
NOTHING (cmd_deploy_profile)
NOTHING (cmd_deploy_referee)
NOTHING (cmd_image_build)
NOTHING (cmd_image_push)
NOTHING (cmd_image_pull)
NOTHING (cmd_new)
NOTHING (cmd_doctor)
NOTHING (cmd_eval_show)
NOTHING (cmd_eval_diff)
NOTHING (cmd_eval_run)
NOTHING (cmd_mcp_add)
NOTHING (cmd_mcp_call)
NOTHING (cmd_mcp_connect)
NOTHING (cmd_mcp_diff)
NOTHING (cmd_mcp_list)
NOTHING (cmd_mcp_login)
NOTHING (cmd_mcp_logout)
NOTHING (cmd_mcp_serve)
NOTHING (cmd_mcp_show)
NOTHING (cmd_mcp_update)
NOTHING (cmd_self)
NOTHING (cmd_version)
NOTHING (cmd_completions)
NOTHING (cmd_explain)
NOTHING (cmd_config_get)
NOTHING (cmd_config_list)
NOTHING (cmd_config_path)
NOTHING (cmd_config_set)
NOTHING (cmd_config_unset)
NOTHING (cmd_beta_list)
NOTHING (cmd_beta_set)
NOTHING (cmd_ps)
NOTHING (cmd_watch)
NOTHING (cmd_cancel)
NOTHING (cmd_send)
NOTHING (cmd_answer)
NOTHING (cmd_stop)
NOTHING (cmd_token)
NOTHING (cmd_control_show)
NOTHING (cmd_control_set)
NOTHING (cmd_control_secret)
NOTHING (cmd_control_forget)
NOTHING (cmd_replay)
NOTHING (cmd_trace_pack)
NOTHING (cmd_trace_show)
NOTHING (cmd_trace_steps)
NOTHING (cmd_trace_diff)
NOTHING (cmd_trace_report)
NOTHING (cmd_trace_export)
NOTHING (cmd_trace_fetch)
NOTHING (cmd_trace_list)
NOTHING (cmd_trace_rm)
NOTHING (cmd_conversation_ls)
NOTHING (cmd_conversation_show)
NOTHING (cmd_conversation_rm)
NOTHING (cmd_conversation_truncate)
