/* SPDX-License-Identifier: Apache-2.0
 *
 * Being registered. See registered.h.
 */
#include "session/launch/roost_session.h"

#include "base/diag.h"
#include "session/state/session.h"
#include "spawn/report/registration.h"

#define END_TIMEOUT_MS     5000
#define ABANDON_TIMEOUT_MS 500

bool
registered_begin (struct session *s, struct mur_error **err)
{
    const struct secret *grant = s->asked->spawn_grant;
    if (! grant && ! s->policy->spawn_allow.len)
        return true;
    const struct registrant who = { .session_id = s->id.text,
                                    .capsule_name = session_capsule_name (s),
                                    .capsule_version = s->manifest->version,
                                    .grant = grant };
    if (grant)
        redactor_add (s->redactor, grant);
    s->roost_url = getenv ("MURMUR_ROOST_URL");
    s->roost_credential = registration_ask (s->http, s->roost_url, &who, err);
    if (s->roost_credential)
        redactor_add (s->redactor, s->roost_credential);
    return s->roost_credential != NULL;
}

/* Why it was not taken, owned; NULL when it was. */
static char *
deregister (struct session *s, bool is_complete, uint64_t timeout_ms)
{
    char *reason = NULL;
    registration_end (s->http, s->roost_url, s->roost_credential, is_complete, timeout_ms, &reason);
    return reason;
}

void
registered_end (struct session *s, bool is_complete)
{
    if (! s->roost_credential)
        return;
    _cleanup_free_ char *reason = deregister (s, is_complete, END_TIMEOUT_MS);
    if (reason)
        diag_stderr_line ("[capsule-runtime] cannot deregister from mur-roost at %s: %s",
                          s->roost_url, reason);
    secret_free (s->roost_credential);
    s->roost_credential = NULL;
}

void
registered_abandon (struct session *s)
{
    if (s->roost_credential)
        free (deregister (s, false, ABANDON_TIMEOUT_MS));
}
