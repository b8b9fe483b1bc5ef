/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/line/session_words.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/text.h"

#include <string.h>

char *
cli_check_cancel (const struct cli_args *args)
{
    bool has_url = cli_has (args, "--url");
    bool has_second = cli_positional (args, "TASK_ID") != NULL;
    if (has_url && has_second)
        return x_strdup ("with --url only the task is named, not a session");
    if (has_url && ! cli_positional (args, "SESSION"))
        return x_strdup ("the task's id is missing");
    if (! has_url && ! has_second)
        return x_strdup ("a session and a task are needed (or --url and a task)");
    return NULL;
}

/* True of what nobody says to a capsule: `@1`, or the whole id of a session. */
static bool
is_a_session (const char *word)
{
    const char *number = *word == '@' ? word + 1 : str_starts (word, "ses_") ? word + 4 : "";
    size_t digits = strspn (number, "0123456789abcdef");
    return number[0] && ! number[digits] &&
           (*word == '@' ? strspn (number, "0123456789") == digits : digits == 32);
}

char *
cli_check_text (const struct cli_args *args)
{
    const char *only = cli_positional (args, "TEXT") ? NULL : cli_positional (args, "SESSION");
    if (only && ! cli_has (args, "--url") && is_a_session (only))
        return x_asprintf ("the text to send to %s is missing (- is what standard input holds)",
                           only);
    return cli_positional (args, "SESSION") ? NULL : x_strdup ("the text to send is missing");
}
