/* SPDX-License-Identifier: Apache-2.0
 *
 * The page itself, as the build put it into the program (scripts/embed-web).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct ui_page_file {
    const char *target; /* "/", "/assets/app.js"; NULL ends them */
    const char *type;   /* of the content */
    size_t len;
    const char *bytes;
};

extern const struct ui_page_file ui_page_files[];
/* False: the parts from the registry were not there when this was built. */
extern const bool ui_page_has_parts;
