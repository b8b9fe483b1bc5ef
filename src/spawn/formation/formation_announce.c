/* SPDX-License-Identifier: Apache-2.0 */
#include "spawn/formation/formation_announce.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/json.h"
#include "spawn/formation/formation.h"

#include <string.h>

/* RFC 3339 in whole seconds. */
static void
deadline_text (const struct formation *f, char out[25])
{
    clock_rfc3339 (f->deadline_at_ms, out);
    strcpy (out + strlen ("2026-01-02T03:04:05"), "Z");
}

static json_t *
peer_json (const struct member *m)
{
    json_t *o = json_object ();
    json_set_string (o, "name", m->declared->name);
    json_object_set_new (o, "pid", json_integer (m->pid));
    json_set_string (o, "session_id", m->session_id);
    json_set_string (o, "url", m->url);
    json_set_string (o, "workdir", m->workdir);
    return o;
}

static void
announce_json (const struct formation *f)
{
    _cleanup_json_ json_t *o = json_object ();
    json_t *peers = json_array (), *deadline = json_null ();
    if (f->deadline_at_ms) {
        char at[25];
        deadline_text (f, at);
        deadline = json_object ();
        json_set_string (deadline, "at", at);
        json_set_u64 (deadline, "secs", f->plan->deadline_secs);
    }
    for (size_t i = 0; i < f->len; i++)
        if (! f->members[i].declared->is_entry)
            json_array_append_new (peers, peer_json (&f->members[i]));
    json_object_set_new (o, "deadline", deadline);
    json_set_string (o, "entry", f->plan->roster->members[f->plan->roster->entry].name);
    json_set_string (o, "formation_id", f->id.text);
    json_object_set_new (o, "peers", peers);
    _cleanup_free_ char *line = json_text (o, JSON_TEXT_ORDERED);
    diag_stdout_line ("%s", line);
}

static int
name_width (const struct formation *f)
{
    size_t width = 0;
    for (size_t i = 0; i < f->len; i++)
        if (strlen (f->members[i].declared->name) > width)
            width = strlen (f->members[i].declared->name);
    return (int)width;
}

static void
announce_text (const struct formation *f)
{
    int width = name_width (f);
    diag_stderr_line ("formation: %s", f->id.text);
    if (f->deadline_at_ms) {
        char at[25];
        deadline_text (f, at);
        diag_stderr_line ("  deadline %s (%llus)", at, (unsigned long long)f->plan->deadline_secs);
    }
    for (size_t i = 0; i < f->len; i++) {
        const struct member *m = &f->members[i];
        if (m->declared->is_entry)
            continue;
        diag_stderr_line ("  peer   %-*s  %s@%s  pid %d  %s  %s", width, m->declared->name,
                          m->declared->capsule, m->declared->version, (int)m->pid, m->session_id,
                          m->url);
        diag_stderr_line ("         %*s  workdir %s", width, "", m->workdir);
    }
    diag_stderr_line ("  entry  %-*s  starting", width,
                      f->plan->roster->members[f->plan->roster->entry].name);
}

void
formation_announce (const struct formation *f)
{
    if (f->plan->is_json)
        announce_json (f);
    else
        announce_text (f);
}
