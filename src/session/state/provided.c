/* SPDX-License-Identifier: Apache-2.0 */
#include "session/state/provided.h"

#include "session/state/session.h"

#include <string.h>

const struct provided_tool *
provided_find (const struct session *s, const char *name)
{
    for (size_t i = 0; i < s->kit.provided_count; i++)
        if (strcmp (s->kit.provided[i]->name, name) == 0)
            return s->kit.provided[i];
    return NULL;
}

const char *
provided_parameters (const struct session *s, const struct provided_tool *tool)
{
    return tool->parameters_of ? tool->parameters_of (s) : tool->parameters;
}
