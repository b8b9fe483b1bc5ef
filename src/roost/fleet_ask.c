/* SPDX-License-Identifier: Apache-2.0 */
#include "roost/fleet_ask.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/keys/formation_token.h"
#include "base/secret.h"
#include "net/kube/kube_object.h"
#include "roost/fleet_internal.h"

#include <errno.h>
#include <string.h>

#define WAIT_S_MOST  30
#define WAITING_MOST 64 /* requests that may wait at once; beyond, each is answered at once */
#define DETAIL_BYTES 2000

static const char *const state_names[] = { "queued", "starting", "running", "ended" };

/* --- which child --- */

/* The child of the path when the ticket is for it; under the lock. */
static struct placed *
child_of (struct referee *r, const char *ticket, const char *path)
{
    static const char prefix[] = "/children/";
    char delegation[ID_LEN + 1];
    if (! r->fleet || ! ticket || strlen (path) < sizeof prefix - 1 + ID_LEN)
        return NULL;
    memcpy (delegation, path + sizeof prefix - 1, ID_LEN);
    delegation[ID_LEN] = '\0';
    _cleanup_json_ json_t *payload =
        token_verify (&token_child_ticket, r->fleet->mac_key, ticket, NULL);
    return str_eq (json_get_string (payload, "dlg"), delegation)
               ? fleet_find_delegation (r->fleet, delegation)
               : NULL;
}

static uint64_t
number_of (const char *path, const char *name)
{
    const char *at = strstr (path, name);
    return at ? strtoull (at + strlen (name), NULL, 10) : 0;
}

/* --- what is said of it --- */

/* Where its door is, and a token it takes: from whom, to it. */
static void
set_door (const struct fleet *f, const struct placed *p, const char *from, json_t *body)
{
    _cleanup_free_ char *url = fleet_address (p);
    if (! url)
        return;
    _cleanup_free_ char *formation = fleet_formation (f, p);
    _cleanup_free_ char *member = fleet_member (p);
    char *token = formation_token_mint (f->sign_key, formation, from, member);
    json_set_string (body, "url", url);
    json_set_string (body, "token", token);
    if (token)
        secret_wipe (token, strlen (token));
    free (token);
}

static json_t *
describe (const struct fleet *f, const struct placed *p)
{
    json_t *body = json_object ();
    json_set_u64 (body, "news", p->news + 1);
    json_set_string (body, "state", state_names[p->state]);
    if (p->session)
        json_set_string (body, "session_id", p->session);
    set_door (f, p, "parent", body);
    if (p->state != PLACED_ENDED)
        return body;
    json_set_string (body, "status", p->end.status);
    json_set_u64 (body, "duration_ms", p->end.duration_ms);
    if (p->end.detail)
        json_set_string_n (body, "detail", p->end.detail,
                           utf8_cut (p->end.detail, strlen (p->end.detail), DETAIL_BYTES));
    if (p->end.answer) {
        json_set_string (body, "result", p->end.answer);
        json_set_u64 (body, "result_bytes", p->end.answer_bytes);
    }
    return body;
}

struct verdict
fleet_children (struct referee *r, const char *ticket, const char *path)
{
    uint64_t wait_s = number_of (path, "wait="), seen = number_of (path, "seen=");
    uint64_t at_ms = clock_monotonic_ms () + (wait_s < WAIT_S_MOST ? wait_s : WAIT_S_MOST) * 1000;
    const struct timespec at = { (time_t)(at_ms / 1000), (long)(at_ms % 1000) * 1000000 };
    pthread_mutex_lock (&r->lock);
    struct fleet *f = r->fleet;
    struct placed *p = child_of (r, ticket, path);
    int status = p && f->waiting < WAITING_MOST ? 0 : ETIMEDOUT;
    if (p)
        p->was_asked_for = true;
    /* Looked up anew each time: it may be forgotten meanwhile. */
    while (p && p->news < seen && status != ETIMEDOUT && ! cancel_is_raised (f->cancel)) {
        f->waiting++;
        status = pthread_cond_timedwait (&f->changed, &r->lock, &at);
        f->waiting--;
        p = child_of (r, ticket, path);
    }
    struct verdict v = p ? (struct verdict){ 200, describe (f, p) } : verdict_not_you ();
    pthread_mutex_unlock (&r->lock);
    return v;
}

struct verdict
fleet_children_end (struct referee *r, const char *ticket, const char *path)
{
    pthread_mutex_lock (&r->lock);
    struct placed *p = child_of (r, ticket, path);
    if (p)
        fleet_doom (r->fleet, p, "the session that started it ended it");
    pthread_mutex_unlock (&r->lock);
    return p ? (struct verdict){ 200, json_object () } : verdict_not_you ();
}

/* --- who runs the cluster --- */

/* Whoever may write the session's Job has written there what only the holder of <secret> can have:
 * no credential of the cluster's comes to us. Read from the server, since it is some ms old. */
static bool
is_written (const struct fleet *f, const char *job, const char *secret)
{
    char hex[SHA256_HEX_LEN + 1];
    sha256_hex (secret, strlen (secret), hex);
    _cleanup_free_ char *name = x_asprintf ("operator-%.16s", hex);
    _cleanup_free_ char *escaped = kube_escape (job);
    _cleanup_free_ char *path = fleet_path (f, "jobs", escaped);
    const struct kube_call call = { .method = "GET", .path = path };
    _cleanup_kube_answer_ struct kube_answer a = { 0 };
    return kube_call (f->kube, &call, &a, NULL) && kube_answer_is_ok (&a) &&
           str_eq (kube_own_annotation (a.body, name), hex);
}

struct verdict
fleet_door (struct referee *r, const char *secret, const char *body, size_t body_len)
{
    struct verdict v;
    _cleanup_json_ json_t *o = request_body (body, body_len, &v);
    const char *job = o ? request_text (o, "job", &v) : NULL;
    if (! job)
        return v;
    if (! secret || strlen (secret) < 2 * TOKEN_KEY_LEN || ! is_written (r->fleet, job, secret))
        return verdict_not_you ();
    pthread_mutex_lock (&r->lock);
    const struct placed *p = fleet_find_job (r->fleet, job);
    v = (struct verdict){ 200, json_object () };
    if (p)
        set_door (r->fleet, p, FLEET_OPERATOR, v.body);
    pthread_mutex_unlock (&r->lock);
    if (json_get_string (v.body, "token"))
        return v;
    json_decref (v.body);
    return verdict_error (403,
                          "the session of Job %s has no door now: it has not registered, or "
                          "has ended",
                          job);
}

/* --- its own word --- */

static bool
is_status (const char *text)
{
    return str_eq (text, "ok") || str_eq (text, "error");
}

/* On its Job, so that a restart of the referee loses no outcome. Best effort: the pod's end is seen
 * all the same. */
static void
write_outcome (const struct fleet *f, const char *job, const json_t *outcome)
{
    _cleanup_free_ char *text = json_text (outcome, JSON_TEXT_ORDERED);
    _cleanup_json_ json_t *patch =
        json_pack ("{s:{s:{s:s}}}", "metadata", "annotations", KUBE_OWN_PREFIX "outcome", text);
    _cleanup_free_ char *path = fleet_path (f, "jobs", job);
    const struct kube_call call = { .method = "PATCH",
                                    .path = path,
                                    .body = patch,
                                    .content_type = KUBE_MERGE_PATCH,
                                    .timeout_ms = 3000 };
    _cleanup_kube_answer_ struct kube_answer a = { 0 };
    kube_call (f->kube, &call, &a, NULL);
}

void
fleet_deregister (struct referee *r, const char *session_id, const char *body, size_t body_len)
{
    struct fleet *f = r->fleet;
    _cleanup_json_ json_t *o = json_loadb (body, body_len, 0, NULL);
    const json_t *said = json_object_get (o, "completion");
    const char *status = json_get_string (said, "status");
    const char *answer = json_get_string (said, "result");
    if (! is_status (status))
        status = str_eq (json_get_string (o, "outcome"), "complete") ? "ok" : "error";
    _cleanup_json_ json_t *outcome = json_object ();
    uint64_t duration_ms = 0, answer_bytes = 0;
    json_get_u64 (said, "duration_ms", &duration_ms);
    json_get_u64 (said, "result_bytes", &answer_bytes);
    json_set_string (outcome, "status", status);
    json_set_u64 (outcome, "duration_ms", duration_ms);
    if (answer) {
        json_set_string_n (outcome, "result", answer,
                           utf8_cut (answer, strlen (answer), FLEET_ANSWER_BYTES));
        json_set_u64 (outcome, "result_bytes", answer_bytes);
    }
    pthread_mutex_lock (&r->lock);
    struct placed *p = fleet_find_session (f, session_id);
    _cleanup_free_ char *job = p && ! p->end.status ? x_strdup (p->job) : NULL;
    pthread_mutex_unlock (&r->lock);
    if (! job)
        return;
    write_outcome (f, job, outcome);
    pthread_mutex_lock (&r->lock);
    p = fleet_find_job (f, job);
    if (p && ! p->end.status) {
        p->end.status = x_strdup (status);
        p->end.duration_ms = duration_ms;
        p->end.answer_bytes = answer_bytes;
        const char *kept = json_get_string (outcome, "result");
        p->end.answer = kept ? x_strdup (kept) : NULL;
    }
    if (p)
        fleet_end (f, p, status, NULL);
    pthread_mutex_unlock (&r->lock);
}
