/* SPDX-License-Identifier: Apache-2.0
 *
 * Signs of a shell in a command that no shell reads: a pipe, a list, a redirection, a name to be
 * expanded. They reach the program as plain words, so whoever wrote them must hear of it.
 */
#pragma once

#include <stdbool.h>

/* The first word with a sign no quote covers; owned, NULL: none. Signs that programs take
 * themselves (patterns, variables, a tilde) count only when the command <has_failed>. */
char *shell_sign_of (const char *command, bool has_failed);
