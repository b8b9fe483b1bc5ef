/* SPDX-License-Identifier: Apache-2.0 */
#include "session/launch/roost_session.h"

#include "base/diag.h"
#include "session/handoff/handoff.h"
#include "session/state/session.h"
#include "spawn/report/registration.h"

#define END_TIMEOUT_MS     5000
#define ABANDON_TIMEOUT_MS 500

bool
roost_session_begin (struct session *s, struct mur_error **err)
{
    const struct secret *grant = s->asked->launcher.spawn_grant;
    if (! grant && ! s->policy->spawn_allow.len)
        return true;
    const struct registrant who = { .session_id = s->id.text,
                                    .capsule_name = session_capsule_name (s),
                                    .capsule_version = s->manifest->version,
                                    .grant = grant };
    if (grant)
        redactor_add (s->redactor, grant);
    const char *url = getenv ("MURMUR_ROOST_URL");
    struct secret *credential = registration_ask (s->http, url, &who, err);
    if (! credential)
        return false;
    redactor_add (s->redactor, credential);
    handoff_join (s, url, credential);
    last_acts_add (s, roost_session_abandon);
    return true;
}

/* Why it was not taken, owned; NULL when it was. */
static char *
deregister (struct session *s, bool is_complete, uint64_t timeout_ms)
{
    char *reason = NULL;
    registration_end (s->http, handoff_roost_url (s), handoff_credential (s), is_complete,
                      timeout_ms, &reason);
    return reason;
}

void
roost_session_end (struct session *s, bool is_complete)
{
    if (! handoff_credential (s))
        return;
    _cleanup_free_ char *reason = deregister (s, is_complete, END_TIMEOUT_MS);
    if (reason)
        diag_stderr_line ("[capsule-runtime] cannot deregister from mur-roost at %s: %s",
                          handoff_roost_url (s), reason);
    handoff_leave (s);
}

void
roost_session_abandon (struct session *s)
{
    if (handoff_credential (s))
        free (deregister (s, false, ABANDON_TIMEOUT_MS));
}
