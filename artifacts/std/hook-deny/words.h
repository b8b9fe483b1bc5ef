/* SPDX-License-Identifier: Apache-2.0
 *
 * A command line as a shell would see it: simple commands, and their words.
 */
#ifndef HOOK_DENY_WORDS_H
#define HOOK_DENY_WORDS_H

#include <stdbool.h>
#include <stddef.h>

struct words {
    char **items;
    size_t count;
};

/* The words of the simple command at *text; *text is moved behind it and its separator, and is NULL
 * behind the last one. Variables set before the command's name are left out. */
struct words words_next (const char **text, bool has_separators);
void words_free (struct words *words);

#endif
