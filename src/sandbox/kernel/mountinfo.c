/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/kernel/mountinfo.h"

#include "base/cleanup.h"

#include <string.h>

/* Undoes "\\040" and its like, in place. */
static const char *
unescape (char *text)
{
    char *to = text;
    for (const char *at = text; *at; to++) {
        bool is_octal = at[0] == '\\' && at[1] >= '0' && at[1] <= '3' && at[2] >= '0' &&
                        at[2] <= '7' && at[3] >= '0' && at[3] <= '7';
        *to = is_octal ? (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0')) : *at;
        at += is_octal ? 4 : 1;
    }
    *to = '\0';
    return text;
}

/* "id parent major:minor root mount-point options [tags] - type source super-options" */
static bool
parse (char *line, struct mountinfo_line *out)
{
    char *tail = strstr (line, " - ");
    if (! tail)
        return false;
    *tail = '\0';
    tail += strlen (" - ");
    char *type = strsep (&tail, " "), *source = tail ? strsep (&tail, " ") : NULL;
    char *field = NULL;
    for (int i = 0; i < 5; i++)
        if (! (field = strsep (&line, " ")))
            return false;
    if (! source)
        return false;
    *out = (struct mountinfo_line){ unescape (field), type, unescape (source), tail ? tail : "" };
    return true;
}

bool
mountinfo_next (char **rest, struct mountinfo_line *out)
{
    for (char *line; *rest && (line = strsep (rest, "\n"));)
        if (parse (line, out))
            return true;
    return false;
}
