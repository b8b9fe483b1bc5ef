/* SPDX-License-Identifier: Apache-2.0 */
#include "session/handoff/handoff.h"

#include "base/alloc.h"
#include "session/handoff/delegations.h"
#include "session/handoff/member_calls.h"
#include "session/state/session.h"

struct handoff {
    struct delegations *delegations;
    struct member_calls *member_calls;
    struct secret *roost_credential;
    const char *roost_url;
    bool is_elsewhere; /* mur-roost starts this session's children on other machines */
};

void
handoff_new (struct session *s)
{
    s->rooms.handoff = x_new0 (struct handoff);
}

void
handoff_begin (struct session *s)
{
    if (s->policy->spawn_allow.len)
        s->rooms.handoff->delegations = delegations_new (s);
    s->rooms.handoff->member_calls = member_calls_new (s);
}

void
handoff_end (struct session *s)
{
    delegations_free (s->rooms.handoff->delegations);
    s->rooms.handoff->delegations = NULL;
    member_calls_free (s->rooms.handoff->member_calls);
    s->rooms.handoff->member_calls = NULL;
}

void
handoff_free (struct session *s)
{
    if (! s->rooms.handoff)
        return;
    handoff_leave (s);
    free (s->rooms.handoff);
    s->rooms.handoff = NULL;
}

struct delegations *
handoff_delegations (const struct session *s)
{
    return s->rooms.handoff->delegations;
}

struct member_calls *
handoff_member_calls (const struct session *s)
{
    return s->rooms.handoff->member_calls;
}

/* --- mur-roost --- */

void
handoff_join (struct session *s, const char *url, struct secret *credential)
{
    s->rooms.handoff->roost_url = url;
    s->rooms.handoff->roost_credential = credential;
}

void
handoff_join_elsewhere (struct session *s)
{
    s->rooms.handoff->is_elsewhere = true;
}

bool
handoff_is_elsewhere (const struct session *s)
{
    return s->rooms.handoff->is_elsewhere;
}

void
handoff_leave (struct session *s)
{
    secret_free (s->rooms.handoff->roost_credential);
    s->rooms.handoff->roost_credential = NULL;
}

const struct secret *
handoff_credential (const struct session *s)
{
    return s->rooms.handoff->roost_credential;
}

const char *
handoff_roost_url (const struct session *s)
{
    return s->rooms.handoff->roost_url;
}
