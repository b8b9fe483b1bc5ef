/* SPDX-License-Identifier: Apache-2.0
 *
 * The first words that several commands share.
 */
#pragma once

#include "cli/line/command.h"

extern const struct cli_group cli_groups[]; /* ends with a NULL name */
