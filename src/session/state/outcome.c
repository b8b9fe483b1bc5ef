/* SPDX-License-Identifier: Apache-2.0 */
#include "session/state/outcome.h"

#include "base/alloc.h"

#include <string.h>

void
call_outcome_clear (struct call_outcome *o)
{
    buf_free (&o->text);
    free (o->fence_source);
    free (o->runtime_error);
    free (o->state_effect);
    free (o->resource_id);
    json_decref (o->mcp_result);
    json_decref (o->mcp_error);
    free (o->opened.rules);
    free (o->shell.binary);
    free (o->shell.command);
    free (o->shell.recipe);
    strv_free (&o->shell.refusals);
    strv_free (&o->shell.argv);
    buf_free (&o->shell.out);
    buf_free (&o->shell.err);
    *o = (struct call_outcome){ 0 };
}

void
outcome_set_text (struct call_outcome *o, const char *kind, const char *name, const char *text,
                  size_t len)
{
    buf_truncate (&o->text, 0);
    free (o->fence_source);
    o->fence_source = o->is_unfenced ? NULL : x_asprintf ("%s:%s", kind, name);
    if (o->fence_source)
        fence_append (&o->text, &o->fence_word, o->fence_source, text, len);
    else
        buf_append (&o->text, text, len);
}

void
outcome_set_result (struct call_outcome *o, const char *name, enum tool_status status,
                    const char *text, size_t len)
{
    o->status = status;
    o->is_dispatched = true;
    outcome_set_text (o, "tool", name, text, len);
}

void
outcome_set_error (struct call_outcome *o, const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    free (o->runtime_error);
    o->runtime_error = x_vasprintf (fmt, ap);
    va_end (ap);
    o->status = TOOL_ERROR;
    buf_truncate (&o->text, 0);
    buf_puts (&o->text, o->runtime_error);
}

void
outcome_add_words (struct call_outcome *o, const char *name, const char *words)
{
    buf_puts (&o->text, ". What it wrote last:\n");
    free (o->fence_source);
    o->fence_source = o->is_unfenced ? NULL : x_asprintf ("tool:%s", name);
    if (o->fence_source)
        fence_append (&o->text, &o->fence_word, o->fence_source, words, strlen (words));
    else
        buf_puts (&o->text, words);
}

const char *
outcome_need_text (const char *tool, const json_t *input, const char *key, struct call_outcome *out)
{
    const char *text = json_get_string (input, key);
    if (text && text[strspn (text, " \t\r\n")])
        return text;
    outcome_set_error (out, "%s needs a non-blank string \"%s\"", tool, key);
    return NULL;
}
