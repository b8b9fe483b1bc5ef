/* SPDX-License-Identifier: Apache-2.0
 *
 * Another command of this program, run from one that goes on.
 */
#pragma once

#include <stdbool.h>

/* Runs it with the streams of this one and waits. <words> are its arguments without the program;
 * NULL ends them. True when it ended well. */
bool own_command_run (const char *const *words);
/* Between fork and exec: signals as a new program expects them. */
void own_command_default_signals (void);
