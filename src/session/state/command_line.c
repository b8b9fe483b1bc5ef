/* SPDX-License-Identifier: Apache-2.0 */
#include "session/state/command_line.h"

#include "base/alloc.h"
#include "base/buf.h"

#include <string.h>

static const char *const interpreters[] = { "bash", "sh", "zsh", "fish", "dash", "ksh" };

bool
command_line_is_interpreter (const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN (interpreters); i++)
        if (str_eq (interpreters[i], name))
            return true;
    return false;
}

char *
command_line_text (const char *name, const char *command)
{
    if (command_line_is_interpreter (name))
        return x_strdup (command);
    return *command ? x_asprintf ("%s %s", name, command) : x_strdup (name);
}
