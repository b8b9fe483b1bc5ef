/* SPDX-License-Identifier: Apache-2.0
 *
 * Announcing a session. See readiness.h.
 */
#include "session/readiness.h"
#include "base/json.h"
#include "base/json_write.h"
#include "door/callers/auth.h"

#include "base/diag.h"
#include "session/stage/staged.h"
#include "session/state/session.h"

#include <string.h>
#include <unistd.h>

static void
append_member (struct buf *b, const char *key, const char *value)
{
    buf_printf (b, "%s\"%s\":", b->len > 1 ? "," : "", key);
    json_append_string (b, value, strlen (value));
}

/* The credential whose name comes next after <last>; there is one. */
static size_t
next_by_name (const struct door_auth *auth, const char *last)
{
    size_t best = door_auth_count (auth);
    for (size_t i = 0; i < door_auth_count (auth); i++) {
        const char *name = door_auth_name (auth, i);
        bool is_after = ! last || strcmp (name, last) > 0;
        if (is_after &&
            (best == door_auth_count (auth) || strcmp (name, door_auth_name (auth, best)) < 0))
            best = i;
    }
    return best;
}

static void
append_tokens (struct buf *b, const struct door_auth *auth)
{
    buf_puts (b, ",\"tokens\":{");
    const char *last = NULL;
    for (size_t n = 0; n < door_auth_count (auth); n++) {
        size_t next = next_by_name (auth, last);
        const char *token = secret_reveal (door_auth_token (auth, next));
        last = door_auth_name (auth, next);
        buf_printf (b, "%s\"%s\":", n ? "," : "", last);
        json_append_string (b, token, strlen (token));
    }
    buf_putc (b, '}');
}

void
readiness_print_json (const struct session *s, const char *url, bool with_tokens)
{
    struct buf b = { 0 };
    bool is_authenticated = s->rooms.staged->auth && url[0];
    buf_putc (&b, '{');
    if (is_authenticated)
        append_member (&b, "auth", "bearer");
    if (s->asked->launcher.formation_id)
        append_member (&b, "formation_id", s->asked->launcher.formation_id);
    append_member (&b, "name", s->manifest->name);
    buf_printf (&b, ",\"pid\":%d", (int)getpid ());
    append_member (&b, "records_dir", s->places.dirs.records_path);
    append_member (&b, "session_id", s->id.text);
    if (is_authenticated && with_tokens)
        append_tokens (&b, s->rooms.staged->auth);
    append_member (&b, "url", url);
    append_member (&b, "version", s->manifest->version);
    append_member (&b, "workdir", s->places.work_path);
    buf_putc (&b, '}');
    if (is_authenticated && with_tokens)
        diag_secret_line (b.data);
    else
        diag_stdout_line ("%s", b.data);
    secret_wipe (b.data, b.len);
    buf_free (&b);
}

void
readiness_print_human (const struct session *s, const char *url, bool is_verbose,
                       readiness_line_fn *line)
{
    if (url[0])
        line ("murmur: url %s", url);
    if (url[0] && s->rooms.staged->auth)
        line ("murmur: auth bearer (mur token %s)", s->id.text);
    line ("session: %s", s->id.text);
    if (! is_verbose)
        return;
    line ("workdir: %s", s->places.work_path);
    line ("records: %s", s->places.dirs.records_path);
    line ("manifest: %s v%s", s->manifest->name, s->manifest->version);
    if (s->choices.primary.artifact)
        line ("driver: %s (%s)", s->choices.primary.artifact->full_name, s->choices.primary.model);
    size_t skills = 0;
    for (size_t i = 0; i < s->kit.artifact_count; i++)
        skills += s->kit.artifacts[i].role == ROLE_SKILL;
    if (skills)
        line ("skills: %zu installed", skills);
    if (s->asked->launcher.formation_id)
        line ("formation: %s", s->asked->launcher.formation_id);
}
