/* SPDX-License-Identifier: Apache-2.0 */
#include "session/toolbox/tools_array.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/json_write.h"
#include "replay/play/player.h"
#include "session/state/session.h"
#include "session/toolbox/told.h"

#include <string.h>

char *
tools_array_text (const struct session *s)
{
    struct buf out = { 0 };
    buf_putc (&out, '[');
    for (size_t i = 0; i < s->kit.tool_count; i++) {
        const struct tool_entry *t = &s->kit.tools[i];
        if (s->asked->player && player_leaves_away (s->asked->player, t->name))
            continue;
        buf_puts (&out, out.len > 1 ? ",{" : "{");
        if (t->description) {
            buf_puts (&out, "\"description\":");
            json_append_string (&out, t->description, strlen (t->description));
            buf_putc (&out, ',');
        }
        buf_puts (&out, "\"name\":");
        json_append_string (&out, t->name, strlen (t->name));
        buf_printf (&out, ",\"parameters\":%s}", t->parameters);
    }
    buf_putc (&out, ']');
    return buf_steal (&out);
}

void
tools_array_log (struct session *s, const char *tools_text)
{
    if (! told_note_tools (s, tools_text))
        return;
    _cleanup_json_ json_t *tools =
        json_parse (tools_text, strlen (tools_text), "tools", E_RUN_007, NULL);
    _cleanup_free_ char *pretty = json_pretty (tools, JSON_TEXT_SORTED);
    _cleanup_free_ char *entry = x_asprintf ("Installed tools (JSON):\n%s\n\n", pretty);
    _cleanup_error_ struct mur_error *err = NULL;
    if (! fs_append (s->places.records, "logs/bootstrap.log", entry, strlen (entry), &err))
        diag_lost ("logs/bootstrap.log was not written: %s", err->message);
}
