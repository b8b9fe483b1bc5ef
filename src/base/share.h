/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the read-only files that come with the program lie: <prefix>/share/murmur when installed,
 * the build folder when run from there. Both are found from the executable's own path, so a moved
 * tree keeps working.
 */
#pragma once

/* The absolute path of the program that runs, also where /proc is not there, or NULL. Owned. */
char *share_program (void);
/* The absolute path of <name> ("artifacts", "cl100k.tokens") in the first place that has it, or
 * NULL. Owned. */
char *share_path (const char *name);
