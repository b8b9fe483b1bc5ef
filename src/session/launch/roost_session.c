/* SPDX-License-Identifier: Apache-2.0 */
#include "session/launch/roost_session.h"

#include "base/clock.h"
#include "base/diag.h"
#include "base/digest.h"
#include "base/fdio.h"
#include "base/keys/ed25519.h"
#include "door/callers/auth.h"
#include "session/handoff/handoff.h"
#include "session/launch/fleet_lifeline.h"
#include "session/launch/launched.h"
#include "session/stage/staged.h"
#include "session/state/session.h"
#include "spawn/report/registration.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define ANSWER_BYTES       ((size_t)64 << 10) /* as much as a parent's model is shown */
#define END_TIMEOUT_MS     5000
#define ABANDON_TIMEOUT_MS 500

/* What a pod is told of its fleet: whose tokens its door takes, where its children go. */
static bool
join_fleet (struct session *s, const json_t *fleet, struct mur_error **err)
{
    const char *formation = json_get_string (fleet, "formation_id");
    const char *member = json_get_string (fleet, "member");
    const char *key_text = json_get_string (fleet, "verify_key");
    size_t len = 0;
    _cleanup_free_ unsigned char *key =
        key_text ? base64url_decode (key_text, strlen (key_text), &len) : NULL;
    if (! formation || ! member || len != ED25519_KEY_LEN)
        return registration_refuse (getenv ("MURMUR_ROOST_URL"),
                                    "it is no mur-roost --backend kubernetes", err);
    if (! ed25519_load (err))
        return false;
    if (s->rooms.staged->auth)
        door_auth_set_formation (s->rooms.staged->auth, formation, member, key);
    if (str_eq (json_get_string (fleet, "placement"), "fleet"))
        handoff_join_elsewhere (s);
    if (! s->asked->launcher.spawner->delegation_id)
        return true;
    s->rooms.launched->fleet_lifeline = fleet_lifeline_new (handoff_roost_url (s), s->id.text, err);
    return s->rooms.launched->fleet_lifeline != NULL;
}

bool
roost_session_begin (struct session *s, struct mur_error **err)
{
    const struct secret *grant = s->asked->launcher.spawn_grant;
    const char *token_file = s->asked->launcher.fleet_token;
    if (! grant && ! token_file && ! s->policy->spawn_allow.len)
        return true;
    _cleanup_secret_ struct secret *pod_token =
        token_file ? registration_pod_token (token_file, err) : NULL;
    if (token_file && ! pod_token)
        return false;
    _cleanup_json_ json_t *fleet = NULL;
    const struct registrant who = { .session_id = s->id.text,
                                    .capsule_name = session_capsule_name (s),
                                    .capsule_version = s->manifest->version,
                                    .grant = grant,
                                    .pod_token = pod_token,
                                    .fleet = token_file ? &fleet : NULL };
    if (grant || pod_token)
        redactor_add (s->redactor, grant ? grant : pod_token);
    const char *url = getenv ("MURMUR_ROOST_URL");
    struct secret *credential = registration_ask (s->http, url, &who, err);
    if (! credential)
        return false;
    redactor_add (s->redactor, credential);
    handoff_join (s, url, credential);
    last_acts_add (s, roost_session_abandon);
    return ! token_file || join_fleet (s, fleet, err);
}

/* How a delegated pod ended, and its answer: nobody else reads its records. NULL: no such session.
 */
static json_t *
own_completion (const struct session *s, bool is_complete)
{
    if (! s->asked->launcher.fleet_token || ! s->asked->launcher.spawner->delegation_id)
        return NULL;
    json_t *o = json_object ();
    json_set_string (o, "status", is_complete ? "ok" : "error");
    json_set_u64 (o, "duration_ms", clock_monotonic_ms () - s->tally.launched_ms);
    _cleanup_close_ int fd = openat (fs_root_fd (s->places.records), "out/result.txt",
                                     O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    _cleanup_buf_ struct buf text = { 0 };
    if (fd < 0 || fstat (fd, &st) < 0 || ! S_ISREG (st.st_mode))
        return o;
    char *to = buf_reserve (&text, ANSWER_BYTES);
    ssize_t n = pread (fd, to, ANSWER_BYTES, 0);
    if (n > 0) {
        size_t cut = utf8_cut (to, (size_t)n, ANSWER_BYTES - 1);
        json_set_string_n (o, "result", to, cut);
        json_set_u64 (o, "result_bytes", (uint64_t)st.st_size);
    }
    return o;
}

/* Why it was not taken, owned; NULL when it was. */
static char *
deregister (struct session *s, bool is_complete, const json_t *completion, uint64_t timeout_ms)
{
    char *reason = NULL;
    registration_end (s->http, handoff_roost_url (s), handoff_credential (s), is_complete,
                      completion, timeout_ms, &reason);
    return reason;
}

void
roost_session_end (struct session *s, bool is_complete)
{
    fleet_lifeline_free (steal_ptr (&s->rooms.launched->fleet_lifeline));
    if (! handoff_credential (s))
        return;
    _cleanup_json_ json_t *completion = own_completion (s, is_complete);
    _cleanup_free_ char *reason = deregister (s, is_complete, completion, END_TIMEOUT_MS);
    if (reason)
        diag_stderr_line ("[capsule-runtime] cannot deregister from mur-roost at %s: %s",
                          handoff_roost_url (s), reason);
    handoff_leave (s);
}

void
roost_session_abandon (struct session *s)
{
    if (handoff_credential (s))
        free (deregister (s, false, NULL, ABANDON_TIMEOUT_MS));
}
