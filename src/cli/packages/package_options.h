/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of `mur build` and `mur index`.
 */
#pragma once

#include "cli/line/command.h"

extern const struct cli_option cli_build_options[];
extern const struct cli_option cli_index_options[];
