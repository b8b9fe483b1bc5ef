/* SPDX-License-Identifier: Apache-2.0 */
#include "roost/fleet_spawn.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/secret.h"
#include "deploy/fleet_job.h"
#include "net/kube/kube_object.h"
#include "roost/fleet_internal.h"

#include <string.h>

#define RUN_S_MOST    315360000u
#define CONTEXT_BYTES 256 /* clients may name a context as they like */

bool
fleet_places (const struct referee *r, const struct job *parent)
{
    return r->fleet && r->fleet->options.places_all &&
           fleet_find_session (r->fleet, parent->session_id);
}

bool
fleet_read_ask (const json_t *body, struct fleet_ask *ask, struct verdict *refusal)
{
    *ask = (struct fleet_ask){ .delegation = request_text (body, "delegation_id", refusal) };
    ask->context_id = ask->delegation ? request_text (body, "context_id", refusal) : NULL;
    if (! ask->context_id)
        return false;
    if (! id_is_valid (ask->delegation, "dlg_") || ! *ask->context_id ||
        strlen (ask->context_id) > CONTEXT_BYTES ||
        ! json_get_u64 (body, "bound_secs", &ask->run_s) || ! ask->run_s ||
        ask->run_s > RUN_S_MOST) {
        *refusal = verdict_error (400, "a child on another machine needs delegation_id, context_id "
                                       "and bound_secs");
        return false;
    }
    json_get_u64 (body, "deadline_ms", &ask->inherited_deadline_ms);
    return true;
}

/* --- the answer --- */

/* Good for asking after this child, and nothing else. */
static struct verdict
launched (const struct fleet *f, const struct placed *p, const char *sha256)
{
    _cleanup_json_ json_t *payload =
        json_pack ("{s:i,s:s,s:s}", "v", 1, "dlg", p->delegation, "sid", p->parent);
    char *ticket = token_mint (&token_child_ticket, f->mac_key, payload, NULL);
    json_t *body = json_object ();
    json_set_bool (body, "launched", true);
    json_set_string (body, "approval", ticket);
    json_set_string (body, "delegation_id", p->delegation);
    json_set_string (body, "name", p->name);
    json_set_string (body, "version", p->version);
    json_set_string (body, "sha256", sha256);
    json_set_u64 (body, "wait_secs", f->options.queue_timeout_s + FLEET_START_S);
    secret_wipe (ticket, strlen (ticket));
    free (ticket);
    return (struct verdict){ 200, body };
}

struct verdict
fleet_repeat (struct referee *r, const struct job *parent, const struct fleet_ask *ask)
{
    const struct placed *p = fleet_find_delegation (r->fleet, ask->delegation);
    if (! p)
        return (struct verdict){ 0, NULL };
    if (! str_eq (p->parent, parent->session_id))
        return verdict_not_you ();
    return launched (r->fleet, p, "");
}

/* --- the Job --- */

static char *
mint_grant (const struct referee *r, const struct placed *p, const char *sha256)
{
    _cleanup_json_ json_t *payload =
        json_pack ("{s:i,s:s,s:s,s:s,s:s,s:I,s:I,s:s}", "v", 1, "sid", p->parent, "name", p->name,
                   "version", p->version, "digest", sha256, "depth", (json_int_t)p->depth, "exp",
                   (json_int_t)0, "jti", p->delegation + strlen ("dlg_"));
    return token_mint (&token_spawn_approval, r->key, payload, NULL);
}

/* What the child lists and its parent does, too. */
static void
clamp (const struct capsule_manifest *child, const struct capsule_manifest *parent,
       struct strv *env)
{
    const struct cap_allow *wanted = child->capabilities->env, *held = parent->capabilities->env;
    for (size_t i = 0; wanted && held && i < wanted->allow.len; i++)
        if (str_list_has (&held->allow, wanted->allow.items[i]) &&
            ! strv_contains (env, wanted->allow.items[i]))
            strv_push (env, wanted->allow.items[i]);
}

static struct placed *
reserve (struct referee *r, const struct job *parent, const struct placed *asking,
         const struct fleet_ask *ask, const char *name, const char *version)
{
    _cleanup_free_ char *job = fleet_job_name (ask->delegation);
    struct placed *p = fleet_add (r->fleet, job);
    memcpy (p->delegation, ask->delegation, sizeof p->delegation);
    p->root = x_strdup (asking->root);
    p->parent = x_strdup (parent->session_id);
    p->name = x_strdup (name);
    p->version = x_strdup (version);
    p->depth = parent->depth - 1;
    p->round = r->fleet->round;
    p->is_new = true;
    fleet_reserve (r->fleet, p);
    return p;
}

static json_t *
object_of (const struct referee *r, const struct placed *asking, const struct placed *p,
           const struct resolved_capsule *child, const struct capsule_manifest *parent,
           const struct fleet_ask *ask)
{
    const struct fleet_options *o = &r->fleet->options;
    _cleanup_strv_ struct strv env = { 0 };
    clamp (child->manifest, parent, &env);
    char *grant = mint_grant (r, p, child->sha256);
    const struct job_facts facts = {
        .namespace = r->fleet->namespace,
        .image = o->image,
        .queue = o->queue,
        .seccomp = o->seccomp,
        .records_store = o->records_store,
        .ca = o->ca,
        .roost_url = o->roost_url,
        .delegation = p->delegation,
        .context_id = ask->context_id,
        .name = p->name,
        .version = p->version,
        .sha256 = child->sha256,
        .grant = grant,
        .root = p->root,
        .parent_session = p->parent,
        .parent_job = asking->job,
        .parent_pod = asking->pod.name,
        .parent_pod_uid = asking->pod.uid,
        .has_v6 = asking->pod.ip && strchr (asking->pod.ip, ':'),
        .depth = p->depth,
        .env = &env,
        .run_s = ask->run_s,
        .inherited_deadline_ms = ask->inherited_deadline_ms,
        .start_s = o->queue_timeout_s,
    };
    json_t *object = fleet_job_object (&facts);
    free (grant);
    return object;
}

/* What the API server's answer means to the session that asked; status 0: it is created. */
static struct verdict
judge_created (const struct kube_answer *a)
{
    if (kube_answer_is_ok (a))
        return (struct verdict){ 0, NULL };
    if (a->status == 403 && strstr (a->message, "exceeded quota"))
        return verdict_error (403,
                              "the cluster's ResourceQuota allows no further child: %s: waiting "
                              "helps, asking for less does not",
                              a->message);
    if (a->status == 429)
        return verdict_error (403, "the cluster takes no further Job now: %s: waiting helps",
                              *a->message ? a->message : "its API server is busy");
    if (a->status == 403)
        return verdict_error (403, "the cluster refused the child's Job: %s", a->message);
    return verdict_error (500, "the child's Job was not created: %d %s", a->status, a->message);
}

/* 409: created before, by whom? */
static bool
is_ours (const struct fleet *f, const char *job, const char *grant)
{
    _cleanup_free_ char *path = fleet_path (f, "jobs", job);
    const struct kube_call call = { .method = "GET", .path = path };
    _cleanup_kube_answer_ struct kube_answer a = { 0 };
    return kube_call (f->kube, &call, &a, NULL) && kube_answer_is_ok (&a) &&
           str_eq (kube_own_annotation (a.body, "grant"), grant);
}

struct verdict
fleet_create (const struct fleet *f, const json_t *object)
{
    const char *job = json_get_string (json_object_get (object, "metadata"), "name");
    const char *grant = kube_own_annotation (object, "grant");
    _cleanup_free_ char *path = fleet_path (f, "jobs", NULL);
    const struct kube_call call = { .method = "POST", .path = path, .body = object };
    _cleanup_kube_answer_ struct kube_answer a = { 0 };
    struct mur_error *err = NULL;
    if (! kube_call (f->kube, &call, &a, &err)) {
        /* It may have been carried out all the same: nothing is left of what was not answered. */
        bool is_there = is_ours (f, job, grant);
        struct verdict v = verdict_from_error (500, err);
        if (! is_there)
            return v;
        json_decref (v.body);
        return (struct verdict){ 0, NULL };
    }
    if (a.status == 409 && is_ours (f, job, grant))
        return (struct verdict){ 0, NULL };
    return judge_created (&a);
}

struct verdict
fleet_place (struct referee *r, const struct job *parent, const struct resolved_capsule *child,
             const char *name, const char *version, const struct fleet_ask *ask)
{
    struct fleet *f = r->fleet;
    struct verdict v = fleet_repeat (r, parent, ask);
    if (v.status)
        return v;
    const struct placed *asking = fleet_find_session (f, parent->session_id);
    if (! asking || ! asking->pod.uid)
        return verdict_not_you ();
    struct placed *p = reserve (r, parent, asking, ask, name, version);
    _cleanup_json_ json_t *object = object_of (r, asking, p, child, parent->manifest, ask);
    pthread_mutex_unlock (&r->lock);
    v = fleet_create (f, object);
    pthread_mutex_lock (&r->lock);
    p = fleet_find_delegation (f, ask->delegation);
    if (p)
        p->is_new = false;
    if (v.status && p) {
        fleet_unreserve (f, p);
        fleet_remove (f, p);
    }
    if (v.status)
        return v;
    return p ? launched (f, p, child->sha256) : verdict_error (500, "the child's Job is gone");
}
