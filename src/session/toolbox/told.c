/* SPDX-License-Identifier: Apache-2.0 */
#include "session/toolbox/told.h"

#include "base/alloc.h"
#include "session/state/session.h"

struct told {
    char *prompt;
    const char *prompt_source;
    char *logged_tools;
    struct strv warned; /* names of tools */
};

void
told_new (struct session *s)
{
    s->rooms.told = x_new0 (struct told);
    s->rooms.told->prompt_source = "none";
}

void
told_free (struct session *s)
{
    if (! s->rooms.told)
        return;
    free (s->rooms.told->prompt);
    free (s->rooms.told->logged_tools);
    strv_free (&s->rooms.told->warned);
    free (s->rooms.told);
    s->rooms.told = NULL;
}

void
told_set_prompt (struct session *s, char *prompt, const char *source)
{
    free (s->rooms.told->prompt);
    s->rooms.told->prompt = prompt;
    s->rooms.told->prompt_source = source;
}

const char *
told_prompt (const struct session *s)
{
    return s->rooms.told->prompt;
}

const char *
told_prompt_source (const struct session *s)
{
    return s->rooms.told->prompt_source;
}

bool
told_note_tools (struct session *s, const char *tools_text)
{
    if (str_eq (s->rooms.told->logged_tools, tools_text))
        return false;
    free (s->rooms.told->logged_tools);
    s->rooms.told->logged_tools = x_strdup (tools_text);
    return true;
}

bool
told_note_warning (struct session *s, const char *tool)
{
    if (strv_contains (&s->rooms.told->warned, tool))
        return false;
    strv_push (&s->rooms.told->warned, tool);
    return true;
}
