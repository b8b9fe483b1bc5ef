/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program said its version is, kept for the user by what the program is: its path, size,
 * inode and times. Some need a second to say it, and say the same until they are installed anew.
 *
 * Always true: kept only for a file that is the program itself. A shell's script, and what runs
 * outside of the walls, may start another one tomorrow.
 */
#pragma once

#include "session/harness/harness.h"

/* Which program this is now. Owned; NULL: nothing may be kept of it. */
char *harness_version_mark (const struct harness *h);
/* What the program of that mark said. Owned; NULL: not known, or <mark> is. */
char *harness_version_known (const struct harness *h, const char *mark);
/* <mark> NULL, or no longer that of the program: nothing is kept. No failure is one of a run. */
void harness_version_keep (const struct harness *h, const char *mark, const char *line);
