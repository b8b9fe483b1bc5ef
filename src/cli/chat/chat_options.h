/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of `mur chat`, for the table of commands.
 */
#pragma once

#include "cli/line/command.h"

extern const struct cli_option cli_chat_options[]; /* a row without a name ends them */
