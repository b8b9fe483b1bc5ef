/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of `mur deploy`: what is rendered, and where files of it go; and of `mur
 * image`.
 */
#pragma once

#include "cli/line/command.h"

extern const struct cli_option cli_deploy_render_options[];
extern const struct cli_option cli_deploy_check_options[];
extern const struct cli_option cli_deploy_apply_options[];
extern const struct cli_option cli_deploy_profile_options[];
extern const struct cli_option cli_deploy_referee_options[];
extern const struct cli_option cli_image_build_options[];
extern const struct cli_option cli_image_pull_options[];
