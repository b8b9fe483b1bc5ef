/* SPDX-License-Identifier: Apache-2.0
 *
 * What this program was built from, written down by the build.
 */
#pragma once

#include <stddef.h>

struct built_part {
    const char *name;
    const char *version; /* as its package says */
    const char *use;     /* "linked in", or "opened when needed" */
};

/* In the order of the build's table; *count rows. Static storage. */
const struct built_part *built_parts (size_t *count);
/* "gcc 12.2.0", "x86_64-linux". Static storage. */
const char *built_compiler (void);
const char *built_for (void);
