/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/line/args.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "cli/line/args_internal.h"

#include <stdio.h>
#include <stdlib.h>

static size_t
option_index (const struct cli_args *args, const char *name)
{
    for (size_t i = 0; args->command->options[i].name; i++)
        if (str_eq (args->command->options[i].name, name))
            return i;
    fprintf (stderr, "mur %s has no option %s\n", args->command->name, name);
    abort ();
}

static size_t
positional_index (const struct cli_args *args, const char *name)
{
    for (size_t i = 0; args->command->positionals[i].name; i++)
        if (str_eq (args->command->positionals[i].name, name))
            return i;
    fprintf (stderr, "mur %s has no positional %s\n", args->command->name, name);
    abort ();
}

bool
cli_has (const struct cli_args *args, const char *option)
{
    return args->is_given[option_index (args, option)];
}

const char *
cli_value (const struct cli_args *args, const char *option)
{
    size_t i = option_index (args, option);
    return args->is_given[i] ? args->values[i] : args->command->options[i].fallback;
}

uint64_t
cli_number (const struct cli_args *args, const char *option)
{
    size_t i = option_index (args, option);
    if (args->is_given[i])
        return args->numbers[i];
    const char *fallback = args->command->options[i].fallback;
    return fallback ? strtoull (fallback, NULL, 10) : 0;
}

const char *
cli_positional (const struct cli_args *args, const char *name)
{
    size_t i = positional_index (args, name);
    return i < args->word_count ? args->words[i] : NULL;
}

const char *const *
cli_positionals (const struct cli_args *args, const char *name, size_t *count)
{
    size_t i = positional_index (args, name);
    *count = i < args->word_count ? args->word_count - i : 0;
    return *count ? args->words + i : NULL;
}

const struct cli_command *
cli_command_of (const struct cli_args *args)
{
    return args->command;
}

void
cli_args_free (struct cli_args *args)
{
    if (! args)
        return;
    free (args->words);
    free (args);
}

const struct cli_table *
cli_table_of (const struct cli_args *args)
{
    return args->table;
}
