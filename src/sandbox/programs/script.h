/* SPDX-License-Identifier: Apache-2.0
 *
 * What a script is run by: the first line's words.
 */
#pragma once

#include "base/buf.h"

/* The interpreter of a "#!" file, as written (a path), and with one `env` hop the name it looks
 * for. Nothing is appended for any other file. */
void script_interpreters (const char *path, struct strv *out);

/* True when the last of them is a shell. */
bool script_is_shell (const struct strv *interpreters);
