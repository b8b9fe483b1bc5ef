/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/line/command.h"

#include "base/buf.h"

const struct cli_command *
cli_find_command (const struct cli_table *table, const char *name)
{
    for (size_t i = 0; i < table->command_count; i++)
        if (str_eq (table->commands[i].name, name))
            return &table->commands[i];
    return NULL;
}

const struct cli_group *
cli_find_group (const struct cli_table *table, const char *name)
{
    for (const struct cli_group *g = table->groups; g->name; g++)
        if (str_eq (g->name, name))
            return g;
    return NULL;
}
