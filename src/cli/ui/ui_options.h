/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of `mur ui`, for the table of commands.
 */
#pragma once

#include "cli/line/command.h"

extern const struct cli_option cli_ui_options[]; /* a row without a name ends them */
