/* SPDX-License-Identifier: Apache-2.0
 *
 * Which version a program is of, where it says none itself.
 */
#pragma once

#include <stdbool.h>

/* True when a word of the line is a version: digits, a dot, digits, a leading v aside. */
bool version_line_has_one (const char *line);

/* What the package.json of the npm package says that a program (a path, links followed) lies in.
 * Owned, NULL: it lies in none. */
char *package_version_of (const char *program);
