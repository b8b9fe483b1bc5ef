/* SPDX-License-Identifier: Apache-2.0
 *
 * Announcing a session. See readiness.h.
 */
#include "session/readiness.h"

#include "base/diag.h"
#include "session/session.h"

#include <string.h>
#include <unistd.h>

static const char *
announced_name (const struct session *s)
{
    return s->request->capsule_artifact ? s->request->capsule_artifact : s->manifest->name;
}

static void
append_member (struct buf *b, const char *key, const char *value)
{
    buf_printf (b, "%s\"%s\":", b->len > 1 ? "," : "", key);
    json_append_string (b, value, strlen (value));
}

void
readiness_print_json (const struct session *s, const char *url)
{
    _cleanup_buf_ struct buf b = { 0 };
    buf_putc (&b, '{');
    append_member (&b, "name", announced_name (s));
    buf_printf (&b, ",\"pid\":%d", (int)getpid ());
    append_member (&b, "records_dir", s->dirs.records_path);
    append_member (&b, "session_id", s->id.text);
    append_member (&b, "url", url);
    append_member (&b, "version", s->manifest->version);
    append_member (&b, "workdir", s->work_path);
    buf_putc (&b, '}');
    diag_stdout_line ("%s", b.data);
}

void
readiness_print_human (const struct session *s, const char *url, bool is_verbose)
{
    if (url[0])
        diag_stdout_line ("murmur: url %s", url);
    diag_stdout_line ("session: %s", s->id.text);
    if (! is_verbose)
        return;
    diag_stdout_line ("workdir: %s", s->work_path);
    diag_stdout_line ("records: %s", s->dirs.records_path);
    diag_stdout_line ("manifest: %s v%s", s->manifest->name, s->manifest->version);
    if (s->driver.artifact)
        diag_stdout_line ("driver: %s (%s)", s->driver.artifact->full_name, s->driver.model);
    size_t skills = 0;
    for (size_t i = 0; i < s->artifact_count; i++)
        skills += s->artifacts[i].role == ROLE_SKILL;
    if (skills)
        diag_stdout_line ("skills: %zu installed", skills);
}
