/* SPDX-License-Identifier: Apache-2.0 */
#include "session/launch/running_record.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/fdio.h"
#include "door/callers/auth.h"
#include "door/door.h"
#include "home/running.h"
#include "session/loop/loop.h"
#include "session/stage/staged.h"
#include "session/state/session.h"
#include "spawn/child/lifeline.h"
#include "spawn/formation/membership.h"

#include <string.h>

/* The only file that holds the door's tokens. */
static void
fill_tokens (const struct door_auth *auth, struct running_record *r)
{
    r->door_token = secret_copy (door_auth_token (auth, 0));
    r->credential_count = door_auth_count (auth) - 1;
    r->credentials = x_new_array (struct running_credential, r->credential_count + 1);
    for (size_t i = 0; i < r->credential_count; i++)
        r->credentials[i] =
            (struct running_credential){ x_strdup (door_auth_name (auth, i + 1)),
                                         secret_copy (door_auth_token (auth, i + 1)) };
}

static char *
copy_of (const char *text)
{
    return text ? x_strdup (text) : NULL;
}

static void
fill_membership (const struct membership *m, struct running_record *r)
{
    if (! m)
        return;
    const char *start;
    r->formation_member = x_strdup (membership_member (m));
    r->formation_entry = membership_is_entry (m);
    r->formation_lifeline = lifeline_fd (LIFELINE_FORMATION) >= 0;
    r->launcher_pid = membership_launcher (m, &start);
    r->launcher_start = copy_of (start);
}

void
running_record_begin (struct session *s)
{
    struct running_record r = { 0 };
    last_acts_add (s, running_record_end);
    running_record_fill_self (&r);
    r.session_id = x_strdup (s->id.text);
    r.url = x_strdup (door_url (s->door));
    r.capsule_name = x_strdup (s->manifest->name);
    r.capsule_version = x_strdup (s->manifest->version);
    r.workdir = x_strdup (s->places.work_path);
    r.records_dir = x_strdup (s->places.dirs.records_path);
    r.formation_id = copy_of (s->asked->launcher.formation_id);
    r.ends_by_itself = ! loop_sleeps (s);
    r.spawned_by = copy_of (s->asked->launcher.spawner->session_id);
    fill_membership (s->asked->launcher.membership, &r);
    if (s->rooms.staged->auth)
        fill_tokens (s->rooms.staged->auth, &r);
    _cleanup_error_ struct mur_error *err = NULL;
    if (! running_write (&r, &err)) {
        /* Whoever looks for the session later finds why it cannot be addressed. */
        _cleanup_free_ char *line =
            x_asprintf ("[capsule-runtime] warning[W-SEC-023]: %s", err->message);
        diag_warn (DIAG_RUNTIME, W_SEC_023, "%s", err->message);
        session_log_line (s, line);
    }
    running_record_clear (&r);
}

void
running_record_end (struct session *s)
{
    running_remove (s->id.text);
}
