/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands about a capsule as a workload of other machines.
 */
#pragma once

#include "cli/line/command.h"

cli_run_fn cmd_deploy_render;
cli_run_fn cmd_deploy_check;
cli_run_fn cmd_deploy_apply;
cli_run_fn cmd_deploy_profile;
cli_run_fn cmd_deploy_referee;
cli_run_fn cmd_image_build;
cli_run_fn cmd_image_push;
cli_run_fn cmd_image_pull;
