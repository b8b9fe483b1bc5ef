/* SPDX-License-Identifier: Apache-2.0 */
#include "roost/fleet_watch.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "manifest/settings/roster.h"
#include "net/kube/kube_object.h"
#include "net/kube/kube_watch.h"
#include "roost/fleet_internal.h"
#include "roost/fleet_team.h"
#include "roost/fleet_times.h"

#include <string.h>

#define SESSIONS "labelSelector=murmur.dev%2Froot"

static const char *
name_of (const json_t *object)
{
    return json_get_string (json_object_get (object, "metadata"), "name");
}

static void
replace (char **to, const char *text)
{
    if (! text || str_eq (*to, text))
        return;
    free (*to);
    *to = x_strdup (text);
}

/* --- Jobs --- */

/* "Complete" or "Failed" once it is over; NULL before. *detail is owned. */
static const char *
finished (const json_t *job, char **detail)
{
    const json_t *c = kube_job_end (job);
    const char *type = json_get_string (c, "type");
    if (str_eq (type, "Failed")) {
        const char *reason = json_get_string (c, "reason"), *text = json_get_string (c, "message");
        *detail = x_asprintf ("its Job failed: %s: %s", reason ? reason : "", text ? text : "");
    }
    return type;
}

/* What the referee itself wrote there when the session said its end. */
static void
take_outcome (struct placed *p, const char *text)
{
    _cleanup_json_ json_t *o = text ? json_loads (text, 0, NULL) : NULL;
    const char *status = json_get_string (o, "status"), *answer = json_get_string (o, "result");
    if (! status || p->end.status)
        return;
    p->end.status = x_strdup (status);
    p->end.answer = answer ? x_strdup (answer) : NULL;
    json_get_u64 (o, "result_bytes", &p->end.answer_bytes);
    json_get_u64 (o, "duration_ms", &p->end.duration_ms);
}

/* Of a formation: an entry brings the roster, a peer its name in it. */
static void
take_place (struct placed *p, const json_t *job)
{
    if (! p->seat.team)
        p->seat.team = fleet_team_new (job);
    else if (kube_own_annotation (job, "formation"))
        p->seat.team->is_launched = true;
    if (p->seat.team && p->seat.team->roster) {
        replace (&p->seat.formation, p->seat.team->id);
        replace (&p->seat.member, p->seat.team->roster->members[p->seat.team->roster->entry].name);
    } else if (kube_own_annotation (job, "member")) {
        replace (&p->seat.formation, kube_own_annotation (job, "formation"));
        replace (&p->seat.member, kube_own_annotation (job, "member"));
        replace (&p->seat.entry, kube_own_label (job, "parent"));
    }
}

static void
take_facts (struct placed *p, const json_t *job)
{
    uint64_t created =
        fleet_time_ms (json_get_string (json_object_get (job, "metadata"), "creationTimestamp"));
    const char *delegation = kube_own_annotation (job, "delegation");
    replace (&p->uid, json_get_string (json_object_get (job, "metadata"), "uid"));
    if (! p->root)
        p->root = x_strdup (kube_own_label (job, "root"));
    if (delegation && ! *p->delegation && id_is_valid (delegation, "dlg_"))
        memcpy (p->delegation, delegation, sizeof p->delegation);
    if (! p->parent)
        replace (&p->parent, kube_own_annotation (job, "parent-session"));
    if (! p->name)
        replace (&p->name, kube_own_annotation (job, "name"));
    if (! p->version)
        replace (&p->version, kube_own_annotation (job, "version"));
    p->created_ms = created ? created : p->created_ms;
    take_place (p, job);
}

/* Registered with a referee before this one: what it wrote is taken up by whoever tends. */
static void
take_session (struct placed *p, const json_t *job)
{
    const char *session = kube_own_annotation (job, "session");
    const char *pod_uid = kube_own_annotation (job, "pod-uid");
    if (pod_uid && ! p->seat.is_claimed) {
        replace (&p->pod.uid, pod_uid);
        replace (&p->pod.name, kube_own_annotation (job, "pod"));
        p->seat.is_claimed = true;
    }
    const char *depth = kube_own_label (job, "depth");
    if (! session || p->session)
        return;
    replace (&p->session, session);
    p->depth = depth ? (uint32_t)strtoul (depth, NULL, 10) : UINT32_MAX;
    if (p->state != PLACED_ENDED)
        p->state = PLACED_RUNNING;
    p->is_to_be_restored = true;
}

/* The pod of a Job that failed says why, and is heard of on another stream. */
static void
take_job_end (struct fleet *f, struct placed *p, bool is_well, const char *detail)
{
    if (is_well)
        fleet_end (f, p, "ok", "it ended well and its answer was not heard");
    else if (p->pod.is_over || ! p->pod.name)
        fleet_end (f, p, "crashed", p->pod.fault ? p->pod.fault : detail);
    else if (! p->end.job_fault) {
        p->end.job_fault = x_strdup (detail ? detail : "its Job failed");
        p->end.job_over_ms = clock_unix_ms ();
    }
}

static void
on_job (void *ctx, const json_t *job)
{
    struct fleet *f = ctx;
    const char *name = name_of (job);
    _cleanup_free_ char *detail = NULL;
    if (! name)
        return;
    pthread_mutex_lock (&f->referee->lock);
    struct placed *p = fleet_find_job (f, name);
    bool is_known = p != NULL;
    if (! p)
        p = fleet_add (f, name);
    take_facts (p, job);
    take_session (p, job);
    take_outcome (p, kube_own_annotation (job, "outcome"));
    p->round = f->round;
    const char *how = finished (job, &detail);
    if (how)
        take_job_end (f, p, str_eq (how, "Complete"), detail);
    else if (! is_known && *p->delegation && ! p->session && p->parent)
        fleet_reserve (f, p);
    if (json_object_get (json_object_get (job, "metadata"), "deletionTimestamp"))
        p->is_deleted = true;
    pthread_mutex_unlock (&f->referee->lock);
}

static void
gone_locked (struct fleet *f, struct placed *p)
{
    p->is_deleted = true;
    fleet_end (f, p, p->doom ? "terminated" : "crashed",
               p->doom        ? p->doom
               : p->pod.fault ? p->pod.fault
                              : "its Job was deleted");
}

static void
on_job_gone (void *ctx, const json_t *job)
{
    struct fleet *f = ctx;
    const char *name = name_of (job);
    pthread_mutex_lock (&f->referee->lock);
    struct placed *p = name ? fleet_find_job (f, name) : NULL;
    if (p)
        gone_locked (f, p);
    pthread_mutex_unlock (&f->referee->lock);
}

static void
on_jobs_begin (void *ctx)
{
    struct fleet *f = ctx;
    pthread_mutex_lock (&f->referee->lock);
    f->round++;
    pthread_mutex_unlock (&f->referee->lock);
}

/* What the list did not name is gone; what is being created right now need not be in it. */
static void
on_jobs_end (void *ctx)
{
    struct fleet *f = ctx;
    pthread_mutex_lock (&f->referee->lock);
    for (size_t i = 0; i < f->len; i++)
        if (f->items[i]->round != f->round && ! f->items[i]->is_new)
            gone_locked (f, f->items[i]);
    f->jobs_listed = true;
    fleet_tell (f, NULL);
    pthread_mutex_unlock (&f->referee->lock);
}

/* --- pods --- */

/* Why its container ended, in words; owned. NULL: well. */
static char *
fault_of (const json_t *status)
{
    const char *reason = json_get_string (status, "reason"),
               *text = json_get_string (status, "message");
    const json_t *container = json_array_get (json_object_get (status, "containerStatuses"), 0);
    const json_t *ended = json_object_get (json_object_get (container, "state"), "terminated");
    const char *why = json_get_string (ended, "reason"), *last = json_get_string (ended, "message");
    uint64_t code = 0;
    json_get_u64 (ended, "exitCode", &code);
    if (reason)
        return x_asprintf ("its pod was ended: %s%s%s", reason, text ? ": " : "", text ? text : "");
    if (ended && code)
        return x_asprintf ("exit code %llu%s%s%s%s", (unsigned long long)code, why ? ", " : "",
                           why ? why : "", last ? "\n" : "", last ? last : "");
    return str_eq (json_get_string (status, "phase"), "Failed") ? x_strdup ("its pod failed")
                                                                : NULL;
}

/* An image that cannot be had, a volume, no node with room; owned. NULL: nothing is said. */
static char *
wait_of (const json_t *status)
{
    size_t i;
    json_t *one;
    const json_t *container = json_array_get (json_object_get (status, "containerStatuses"), 0);
    const json_t *said = json_object_get (json_object_get (container, "state"), "waiting");
    json_array_foreach (json_object_get (status, "conditions"), i,
                        one) if (str_eq (json_get_string (one, "type"), "PodScheduled") &&
                                 str_eq (json_get_string (one, "status"), "False")) said = one;
    const char *reason = json_get_string (said, "reason"),
               *text = json_get_string (said, "message");
    if (! reason || str_eq (reason, "ContainerCreating") || str_eq (reason, "PodInitializing"))
        return NULL;
    return x_asprintf ("%s%s%s", reason, text ? ": " : "", text ? text : "");
}

static void
take_pod (struct fleet *f, struct placed *p, const json_t *pod)
{
    const json_t *status = json_object_get (pod, "status");
    const char *uid = json_get_string (json_object_get (pod, "metadata"), "uid");
    const char *phase = json_get_string (status, "phase"), *ip = json_get_string (status, "podIP");
    if ((p->session || p->seat.is_claimed) && ! str_eq (p->pod.uid, uid))
        return; /* another one than the one that registered */
    bool has_news = ip && ! str_eq (p->pod.ip, ip);
    replace (&p->pod.name, name_of (pod));
    replace (&p->pod.uid, uid);
    replace (&p->pod.ip, ip);
    free (p->pod.wait);
    p->pod.wait = wait_of (status);
    if (! p->pod.started_ms)
        p->pod.started_ms = fleet_time_ms (json_get_string (status, "startTime"));
    if (p->state == PLACED_QUEUED && p->pod.started_ms) {
        p->state = PLACED_STARTING;
        has_news = true;
    }
    if (str_eq (phase, "Succeeded") || str_eq (phase, "Failed")) {
        _cleanup_free_ char *fault = fault_of (status);
        replace (&p->pod.fault, fault);
        p->pod.is_over = true;
        bool is_well = str_eq (phase, "Succeeded");
        fleet_end (f, p,
                   p->doom   ? "terminated"
                   : is_well ? "ok"
                             : "crashed",
                   p->doom ? p->doom
                   : fault ? fault
                           : "it ended well and its answer was not heard");
    } else if (has_news) {
        fleet_tell (f, p);
    }
}

static struct placed *
of_pod (struct fleet *f, const json_t *pod)
{
    const json_t *labels = json_object_get (json_object_get (pod, "metadata"), "labels");
    const char *job = json_get_string (labels, "batch.kubernetes.io/job-name");
    if (! job)
        job = json_get_string (labels, "job-name");
    return job ? fleet_find_job (f, job) : NULL;
}

static void
on_pod (void *ctx, const json_t *pod)
{
    struct fleet *f = ctx;
    pthread_mutex_lock (&f->referee->lock);
    struct placed *p = of_pod (f, pod);
    if (p)
        take_pod (f, p, pod);
    pthread_mutex_unlock (&f->referee->lock);
}

static void
on_pod_gone (void *ctx, const json_t *pod)
{
    struct fleet *f = ctx;
    const char *uid = json_get_string (json_object_get (pod, "metadata"), "uid");
    pthread_mutex_lock (&f->referee->lock);
    struct placed *p = of_pod (f, pod);
    if (p && str_eq (p->pod.uid, uid)) {
        p->pod.is_over = true;
        fleet_end (f, p, p->doom ? "terminated" : "crashed",
                   p->doom        ? p->doom
                   : p->pod.fault ? p->pod.fault
                                  : "its pod was deleted");
        fleet_doom (f, p, "its pod was deleted");
    }
    pthread_mutex_unlock (&f->referee->lock);
}

static void
on_pods_begin (void *ctx)
{
    (void)ctx;
}

static void
on_pods_end (void *ctx)
{
    struct fleet *f = ctx;
    pthread_mutex_lock (&f->referee->lock);
    f->pods_listed = true;
    fleet_tell (f, NULL);
    pthread_mutex_unlock (&f->referee->lock);
}

/* --- both --- */

static void
on_trouble (void *ctx, const char *why)
{
    (void)ctx;
    diag_stderr_line ("mur-roost: %s", why);
}

void *
fleet_watch_jobs (void *fleet)
{
    struct fleet *f = fleet;
    _cleanup_free_ char *path = fleet_path (f, "jobs", NULL);
    const struct kube_watcher w = { path,        SESSIONS,    on_jobs_begin, on_job,
                                    on_jobs_end, on_job_gone, on_trouble,    f };
    kube_watch (f->kube, &w, f->cancel);
    return NULL;
}

/* After the Jobs are known: a pod of none is nobody's. */
static bool
await_jobs (struct fleet *f)
{
    bool is_listed = false;
    while (! is_listed && cancel_sleep (f->cancel, 20)) {
        pthread_mutex_lock (&f->referee->lock);
        is_listed = f->jobs_listed;
        pthread_mutex_unlock (&f->referee->lock);
    }
    return is_listed;
}

void *
fleet_watch_pods (void *fleet)
{
    struct fleet *f = fleet;
    _cleanup_free_ char *path = fleet_path (f, "pods", NULL);
    const struct kube_watcher w = { path,        SESSIONS,    on_pods_begin, on_pod,
                                    on_pods_end, on_pod_gone, on_trouble,    f };
    if (await_jobs (f))
        kube_watch (f->kube, &w, f->cancel);
    return NULL;
}
