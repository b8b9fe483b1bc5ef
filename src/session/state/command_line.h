/* SPDX-License-Identifier: Apache-2.0
 *
 * A command line as text (docs/spec/session.md 8.5): which names are interpreters, how one is
 * shown.
 *
 * Nothing is expanded and nothing is run here.
 */
#pragma once

#include <stdbool.h>

/* True for an interpreter that takes "-c <command>". */
bool command_line_is_interpreter (const char *name);
/* The line as it is shown: what an interpreter is given, else name and arguments. Owned. */
char *command_line_text (const char *name, const char *command);
