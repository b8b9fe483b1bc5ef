/* SPDX-License-Identifier: Apache-2.0 */
#include "roost/fleet_register.h"

#include "artifact/names/name.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "deploy/object_name.h"
#include "net/kube/kube_object.h"
#include "roost/fleet_internal.h"
#include "roost/fleet_team.h"
#include "roost/fleet_times.h"
#include "roost/referee_register_internal.h"

#include <string.h>

#define RACES_MOST 3 /* others may write the Job between our look and our word */

struct registering {
    struct referee *r;
    const char *session_id, *name, *version; /* what it says of itself; borrowed */
    char *pod, *pod_uid;                     /* what the cluster says */
    char *job;
    json_t *job_object;
    uint64_t pod_started_ms;
    bool is_child;
    uint32_t depth;
    char *parent; /* session id; NULL: a root, or a member of a formation */
    char *entry;  /* of a formation's peer: the Job of its entry */
    char *digest; /* of the grant */
};

static void
registering_clear (struct registering *g)
{
    free (g->pod);
    free (g->pod_uid);
    free (g->job);
    free (g->parent);
    free (g->entry);
    free (g->digest);
    json_decref (g->job_object);
}

/* --- who it is --- */

static const char *
extra_of (const json_t *user, const char *name)
{
    char key[100];
    snprintf (key, sizeof key, "authentication.kubernetes.io/%s", name);
    return json_string_value (
        json_array_get (json_object_get (json_object_get (user, "extra"), key), 0));
}

static bool
lists (const json_t *array, const char *text)
{
    size_t i;
    json_t *item;
    json_array_foreach (array, i, item) if (str_eq (json_string_value (item), text)) return true;
    return false;
}

/* Pod name and UID of a token that is genuine, for us, and of a pod of our namespace. */
static bool
review_token (struct registering *g, const char *token, struct verdict *refusal)
{
    const struct fleet *f = g->r->fleet;
    struct mur_error *err = NULL;
    _cleanup_json_ json_t *ask =
        json_pack ("{s:s,s:s,s:{s:s,s:[s]}}", "apiVersion", "authentication.k8s.io/v1", "kind",
                   "TokenReview", "spec", "token", token, "audiences", DEPLOY_AUDIENCE);
    const struct kube_call call = { .method = "POST",
                                    .path = "/apis/authentication.k8s.io/v1/tokenreviews",
                                    .body = ask };
    _cleanup_kube_answer_ struct kube_answer a = { 0 };
    if (! kube_call (f->kube, &call, &a, &err)) {
        *refusal = verdict_from_error (500, err);
        return false;
    }
    const json_t *status = json_object_get (a.body, "status"),
                 *user = json_object_get (status, "user");
    const char *username = json_get_string (user, "username");
    const char *pod = extra_of (user, "pod-name"), *uid = extra_of (user, "pod-uid");
    _cleanup_free_ char *accounts = x_asprintf ("system:serviceaccount:%s:", f->namespace);
    *refusal = verdict_not_you ();
    if (! kube_answer_is_ok (&a) || ! json_is_true (json_object_get (status, "authenticated")) ||
        ! lists (json_object_get (status, "audiences"), DEPLOY_AUDIENCE) || ! username ||
        ! str_starts (username, accounts) || ! pod || ! uid)
        return false;
    json_decref (refusal->body);
    g->pod = x_strdup (pod);
    g->pod_uid = x_strdup (uid);
    return true;
}

/* One object; NULL when it is not there or not to be had. Owned. */
static json_t *
get (const struct fleet *f, const char *kind, const char *name)
{
    _cleanup_free_ char *path = fleet_path (f, kind, name);
    const struct kube_call call = { .method = "GET", .path = path };
    struct kube_answer a = { 0 };
    if (! kube_call (f->kube, &call, &a, NULL))
        return NULL;
    json_t *object = kube_answer_is_ok (&a) ? steal_ptr (&a.body) : NULL;
    kube_answer_clear (&a);
    return object;
}

static const json_t *
metadata (const json_t *object)
{
    return json_object_get (object, "metadata");
}

/* The Job that made the pod. */
static const char *
owner_job (const json_t *pod, const char **uid)
{
    size_t i;
    json_t *owner;
    json_array_foreach (json_object_get (metadata (pod), "ownerReferences"), i,
                        owner) if (str_eq (json_get_string (owner, "kind"), "Job") &&
                                   json_is_true (json_object_get (owner, "controller")))
    {
        *uid = json_get_string (owner, "uid");
        return json_get_string (owner, "name");
    }
    return NULL;
}

static bool
find_job (struct registering *g)
{
    const struct fleet *f = g->r->fleet;
    const char *job_uid = NULL;
    _cleanup_json_ json_t *pod = get (f, "pods", g->pod);
    const char *job = pod ? owner_job (pod, &job_uid) : NULL;
    if (! job || ! str_eq (json_get_string (metadata (pod), "uid"), g->pod_uid))
        return false;
    g->pod_started_ms =
        fleet_time_ms (json_get_string (json_object_get (pod, "status"), "startTime"));
    g->job = x_strdup (job);
    json_decref (g->job_object);
    g->job_object = get (f, "jobs", job);
    return g->job_object && str_eq (json_get_string (metadata (g->job_object), "uid"), job_uid) &&
           kube_own_label (g->job_object, "root");
}

/* --- whether it may --- */

/* The grant is the referee's own word; what else stands on the Job is anybody's. */
static bool
read_grant (struct registering *g)
{
    const char *grant = kube_own_annotation (g->job_object, "grant");
    const char *delegation = kube_own_annotation (g->job_object, "delegation");
    const char *depth_label = kube_own_label (g->job_object, "depth");
    g->is_child = grant || delegation;
    if (! g->is_child)
        return true;
    uint64_t depth;
    char depth_text[24];
    _cleanup_json_ json_t *payload =
        grant ? token_verify (&token_spawn_approval, g->r->key, grant, NULL) : NULL;
    const char *jti = json_get_string (payload, "jti"), *sid = json_get_string (payload, "sid");
    const char *digest = json_get_string (payload, "digest");
    _cleanup_free_ char *place = fleet_team_place (g->job_object);
    if (! jti || ! sid || ! digest || ! json_get_u64 (payload, "depth", &depth) ||
        ! (place ? str_eq (place, sid)
                 : delegation && str_starts (delegation, "dlg_") &&
                       str_eq (delegation + strlen ("dlg_"), jti)))
        return false;
    snprintf (depth_text, sizeof depth_text, "%llu", (unsigned long long)depth);
    bool is_said = g->name != NULL; /* at its registration */
    if (! str_eq (depth_label, depth_text) ||
        (is_said && (! str_eq (json_get_string (payload, "name"), g->name) ||
                     ! str_eq (json_get_string (payload, "version"), g->version))))
        return false;
    g->depth = (uint32_t)depth;
    free (g->parent);
    free (g->entry);
    free (g->digest);
    g->parent = place ? NULL : x_strdup (sid);
    g->entry = place ? x_strdup (kube_own_label (g->job_object, "parent")) : NULL;
    g->digest = x_strdup (digest);
    return true;
}

/* Under the lock. Status 0: it may. */
static struct verdict
may_register (const struct registering *g, const struct resolved_capsule *capsule)
{
    struct referee *r = g->r;
    struct verdict v;
    if (! g->is_child) {
        if (! referee_is_root_allowed (r, g->name, &v) || ! referee_has_room_for_root (r, &v))
            return v;
        return (struct verdict){ 0, NULL };
    }
    const struct job *parent = g->parent ? job_table_find (&r->jobs, g->parent) : NULL;
    const struct placed *p = fleet_find_job (r->fleet, g->job);
    const struct placed *entry = g->entry ? fleet_find_job (r->fleet, g->entry) : NULL;
    bool is_wanted = entry ? entry->state != PLACED_ENDED && ! entry->doom
                           : parent && parent->state == JOB_RUNNING;
    if (! is_wanted || (p && (p->doom || p->state == PLACED_ENDED)))
        return verdict_not_you ();
    if (! str_eq (g->digest, capsule->sha256))
        return verdict_error (403,
                              "%s@%s is not the artifact that was approved: approved %s, now %s",
                              g->name, g->version, g->digest, capsule->sha256);
    uint64_t now = clock_unix_ms ();
    if (g->pod_started_ms && now > g->pod_started_ms + FLEET_START_S * 1000u)
        return verdict_error (403,
                              "the approval has expired: it is good for %d s from the start of "
                              "the pod",
                              FLEET_START_S);
    return (struct verdict){ 0, NULL };
}

/* Writes session and pod to the Job, so that the first is the only one and a restart knows. 409:
 * the Job changed meanwhile. */
static int
claim (struct registering *g, struct mur_error **err)
{
    const struct fleet *f = g->r->fleet;
    const char *held_by = kube_own_annotation (g->job_object, "pod-uid");
    const char *session = kube_own_annotation (g->job_object, "session");
    if (held_by && ! str_eq (held_by, g->pod_uid))
        return 403;
    if (held_by && (session || ! g->session_id))
        return ! g->session_id || str_eq (session, g->session_id) ? 200 : 403;
    _cleanup_json_ json_t *patch =
        json_pack ("{s:{s:s,s:{s:s*,s:s,s:s}}}", "metadata", "resourceVersion",
                   json_get_string (metadata (g->job_object), "resourceVersion"), "annotations",
                   KUBE_OWN_PREFIX "session", g->session_id, KUBE_OWN_PREFIX "pod-uid", g->pod_uid,
                   KUBE_OWN_PREFIX "pod", g->pod);
    _cleanup_free_ char *path = fleet_path (f, "jobs", g->job);
    const struct kube_call call = {
        .method = "PATCH", .path = path, .body = patch, .content_type = KUBE_MERGE_PATCH
    };
    _cleanup_kube_answer_ struct kube_answer a = { 0 };
    return kube_call (f->kube, &call, &a, err) ? a.status : 0;
}

/* --- what it is told --- */

static void
keep (struct registering *g)
{
    struct fleet *f = g->r->fleet;
    struct placed *p = fleet_find_job (f, g->job);
    if (! p) {
        p = fleet_add (f, g->job);
        p->root = x_strdup (kube_own_label (g->job_object, "root"));
        p->name = x_strdup (g->name);
        p->version = x_strdup (g->version);
        p->round = f->round;
    }
    free (p->session);
    free (p->pod.uid);
    free (p->pod.name);
    p->session = x_strdup (g->session_id);
    p->pod.uid = x_strdup (g->pod_uid);
    p->pod.name = x_strdup (g->pod);
    p->depth = g->is_child ? g->depth : g->r->options.max_depth;
    p->registered_ms = clock_unix_ms ();
    p->state = PLACED_RUNNING;
    fleet_unreserve (f, p);
    fleet_tell (f, p);
}

/* Whose tokens its door takes (of the referee's, those to it), and where its children go. */
static json_t *
fleet_of (const struct registering *g)
{
    const struct fleet *f = g->r->fleet;
    const struct placed *p = fleet_find_job (f, g->job);
    _cleanup_free_ char *key = base64url_encode (f->verify_key, sizeof f->verify_key);
    _cleanup_free_ char *formation = fleet_formation (f, p);
    _cleanup_free_ char *member = fleet_member (p);
    return json_pack ("{s:s,s:s,s:s,s:s}", "formation_id", formation, "member", member,
                      "verify_key", key, "placement",
                      f->options.places_all ? "fleet" : "local-first");
}

static struct verdict
admit (struct registering *g, struct resolved_capsule *capsule)
{
    struct referee *r = g->r;
    pthread_mutex_lock (&r->lock);
    struct verdict v = may_register (g, capsule);
    const struct job *before = job_table_find (&r->jobs, g->session_id);
    const struct placed *p = fleet_find_job (r->fleet, g->job);
    bool is_again =
        before && p && str_eq (p->session, g->session_id) && before->state == JOB_RUNNING;
    if (! v.status && before && ! is_again)
        v = verdict_not_you ();
    if (! v.status) {
        keep (g);
        v = is_again ? referee_credential_of (r, g->session_id)
                     : referee_admit (r, g->session_id, g->parent, g->name,
                                      g->is_child ? g->depth : r->options.max_depth, capsule,
                                      &(struct caller){ 0 });
        json_object_set_new (v.body, "fleet", fleet_of (g));
    }
    pthread_mutex_unlock (&r->lock);
    return v;
}

/* --- members of a formation --- */

/* Finds the pod's Job and makes the pod its only one. Status 0: it is. */
static struct verdict
take_seat (struct registering *g)
{
    struct mur_error *err = NULL;
    for (int i = 0; i < RACES_MOST; i++) {
        if (! find_job (g) || ! read_grant (g) || (g->is_child && ! g->entry))
            return verdict_not_you ();
        int status = claim (g, &err);
        if (status == 0)
            return verdict_from_error (500, err);
        if (status / 100 == 2)
            return (struct verdict){ 0, NULL };
        if (status != 409)
            return verdict_not_you ();
    }
    return verdict_error (500, "the Job %s is written by others all the time", g->job);
}

struct verdict
fleet_seat (struct referee *r, const char *token, const char *body, size_t body_len)
{
    struct verdict v;
    struct registering g = { .r = r };
    uint64_t wait_s = 0, seen = 0;
    _cleanup_json_ json_t *o = request_body (body, body_len, &v);
    if (! o)
        return v;
    json_get_u64 (o, "wait", &wait_s);
    json_get_u64 (o, "seen", &seen);
    if (review_token (&g, token, &v)) {
        v = take_seat (&g);
        if (! v.status)
            v = fleet_team_answer (r, g.job, g.pod_uid, g.pod, wait_s, seen);
    }
    registering_clear (&g);
    return v;
}

/* --- the whole --- */

/* Looks, judges, claims; again when the Job was written meanwhile. */
static struct verdict
judge (struct registering *g, struct resolved_capsule *capsule)
{
    struct mur_error *err = NULL;
    for (int i = 0; i < RACES_MOST; i++) {
        if (! find_job (g) || ! read_grant (g))
            return verdict_not_you ();
        pthread_mutex_lock (&g->r->lock);
        struct verdict v = may_register (g, capsule);
        pthread_mutex_unlock (&g->r->lock);
        if (v.status)
            return v;
        int status = claim (g, &err);
        if (status == 0)
            return verdict_from_error (500, err);
        if (status / 100 == 2)
            return admit (g, capsule);
        if (status != 409)
            return verdict_not_you ();
    }
    return verdict_error (500, "the Job %s is written by others all the time", g->job);
}

struct verdict
fleet_register (struct referee *r, const char *token, const char *body, size_t body_len)
{
    struct verdict refusal;
    struct mur_error *err = NULL;
    struct registering g = { .r = r };
    struct resolved_capsule capsule = { 0 };
    _cleanup_json_ json_t *o = request_body (body, body_len, &refusal);
    g.session_id = o ? request_text (o, "session_id", &refusal) : NULL;
    g.name = g.session_id ? request_text (o, "name", &refusal) : NULL;
    g.version = g.name ? request_text (o, "version", &refusal) : NULL;
    if (! g.version)
        return refusal;
    if (! id_is_valid (g.session_id, "ses_") || ! name_is_full (g.name))
        return verdict_error (400, "session_id is no session's, or the name is no full one");
    struct verdict v;
    if (! review_token (&g, token, &v))
        ;
    else if (! referee_resolve (r, g.name, g.version, &capsule, &err))
        v = verdict_from_error (500, err);
    else
        v = judge (&g, &capsule);
    capsule_manifest_free (capsule.manifest);
    registering_clear (&g);
    return v;
}
