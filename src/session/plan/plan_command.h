/* SPDX-License-Identifier: Apache-2.0
 *
 * The command of a shell step.
 */
#pragma once

#include "session/plan/plan.h"

/* Splits a shell step into the name of a command and what that command's tool would be given
 * (both owned). False: the line is blank. */
bool
plan_command_read (const struct plan_step *step, const json_t *input, char **name, char **command);
