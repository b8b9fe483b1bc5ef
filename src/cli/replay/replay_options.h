/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of `mur replay` (docs/spec/cli.md).
 */
#pragma once

#include "cli/line/command.h"

extern const struct cli_option cli_replay_options[], cli_trace_pack_options[];
