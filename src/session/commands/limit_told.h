/* SPDX-License-Identifier: Apache-2.0
 *
 * E-RUN-011: a command that a limit of capabilities.resources stopped, said once to whoever runs
 * the session. What the model is told of it is a note of its result.
 */
#pragma once

#include "sandbox/run/command.h"

/* The sentence, owned; NULL: no limit stopped it. */
char *limit_told (const char *binary, const struct command_result *r);
