/* SPDX-License-Identifier: Apache-2.0
 *
 * What people type who know other programs, and which command they mean.
 */
#pragma once

#include "cli/line/command.h"

extern const struct cli_habit cli_habits[]; /* ends with a NULL name */
