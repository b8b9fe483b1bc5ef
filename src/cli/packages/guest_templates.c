/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/packages/guest_templates.h"

#include "base/buf.h"

const struct project_template *
guest_template_find (const char *role, const char *language)
{
    for (const struct guest_template *t = guest_templates; t->role; t++)
        if (str_eq (t->role, role) && str_eq (t->template.name, language))
            return &t->template;
    return NULL;
}
