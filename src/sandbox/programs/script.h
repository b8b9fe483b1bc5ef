/* SPDX-License-Identifier: Apache-2.0
 *
 * What a script is run by, the first line's words, and what a shell's script plainly starts.
 */
#pragma once

#include "base/buf.h"

/* The interpreter of a "#!" file, as written (a path), and with one `env` hop the name it looks
 * for. Nothing is appended for any other file. */
void script_interpreters (const char *path, struct strv *out);

/* True when the last of them is a shell. */
bool script_is_shell (const struct strv *interpreters);

/* What the text of a shell's script starts without an expansion: every absolute path in it, and
 * what follows the word exec. Candidates alone, most are no programs; at most 16, from its first 64
 * KiB. */
void script_starts (const char *path, struct strv *out);
