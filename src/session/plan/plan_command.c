/* SPDX-License-Identifier: Apache-2.0 */
#include "session/plan/plan_command.h"

#include "base/alloc.h"
#include "base/words.h"
#include "session/state/command_line.h"

#include <string.h>

static const char blanks[] = " \t\n\v\f\r";

/* An interpreter asked for as `bash -c 'script'` gets just that script. */
static char *
unwrap_script (const char *name, const char *rest)
{
    _cleanup_strv_ struct strv words = { 0 };
    bool is_split = command_line_is_interpreter (name) && words_split (rest, &words);
    bool is_wrapped = is_split && words.len == 2 && str_eq (words.items[0], "-c");
    return x_strdup (is_wrapped ? words.items[1] : rest);
}

bool
plan_command_read (const struct plan_step *step, const json_t *input, char **name, char **command)
{
    const char *line = step->name + strspn (step->name, blanks);
    size_t len = strcspn (line, blanks);
    if (! len)
        return false;
    const char *rest = line + len + strspn (line + len, blanks);
    const char *given =
        json_is_string (input) ? json_string_value (input) : json_get_string (input, "command");
    *name = x_strndup (line, len);
    *command = *rest ? unwrap_script (*name, rest) : x_strdup (given ? given : "");
    return true;
}
