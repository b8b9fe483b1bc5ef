/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/running/task_words.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "trace/read/text.h"

#include <string.h>

char *
printed_state (const char *state)
{
    const char *word =
        state && str_starts (state, "TASK_STATE_") ? state + strlen ("TASK_STATE_") : state;
    char *text = x_strdup (word ? word : "unknown");
    str_lower (text);
    for (char *c = text; *c; c++)
        *c = *c == '_' ? '-' : *c;
    return text;
}

void
print_residue (const json_t *item)
{
    if (str_eq (json_get_string (item, "kind"), "delegation"))
        out_printf ("ended:   %s  delegation  %s@%s\n", member_text (item, "delegation_id"),
                    member_text (item, "capsule"), member_text (item, "version"));
    else
        out_printf ("running: %s  detached shell  %s\n", member_text (item, "work_id"),
                    member_text (item, "command"));
}
