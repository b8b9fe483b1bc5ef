/* SPDX-License-Identifier: Apache-2.0
 *
 * The templates of components, by role and by the language they are written in. The table is made
 * of artifacts/templates by scripts/embed-templates.
 */
#pragma once

#include "cli/packages/templates.h"

struct guest_template {
    const char *role;                 /* NULL ends the table */
    struct project_template template; /* its name is the language */
};

extern const struct guest_template guest_templates[];

/* <role> is "tool", "hook" or "driver", <language> "c", "python", "javascript", "rust" or "go".
 * NULL when there is none. */
const struct project_template *guest_template_find (const char *role, const char *language);
