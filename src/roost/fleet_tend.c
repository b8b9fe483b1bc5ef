/* SPDX-License-Identifier: Apache-2.0 */
#include "roost/fleet_tend.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/diag.h"
#include "roost/fleet_internal.h"
#include "roost/fleet_team.h"
#include "roost/referee_register_internal.h"

#include <string.h>

#define LOOK_MS     250
#define POD_GRACE_S 5
#define ASKED_MS    120000 /* a parent that never asks after its child has died before it could */
#define KEPT_MS     900000 /* an ended one is remembered that long, its parent may still ask */
#define POD_WORD_MS 3000   /* a Job's end may be seen before its pod's, which says more */
#define LET_GO_MS   25000  /* what a session has for its end, and some seconds */
#define AT_ONCE     16     /* deletions of one look */

/* --- what is due --- */

/* Its entry's end is its own: it is told, and what is left after the time a session has for its end
 * goes. */
static void
look_at_peer (struct fleet *f, struct placed *p, uint64_t now)
{
    const struct placed *entry = fleet_find_job (f, p->seat.entry);
    if (entry && entry->state != PLACED_ENDED && ! entry->doom)
        return;
    if (! p->seat.let_go_ms)
        p->seat.let_go_ms = now;
    if (p->state != PLACED_RUNNING || now > p->seat.let_go_ms + LET_GO_MS)
        fleet_doom (f, p, "its formation has ended");
}

static void
look_at_one (struct fleet *f, struct placed *p, uint64_t now)
{
    char why[400];
    const char *wait = p->pod.wait ? p->pod.wait : "", *colon = p->pod.wait ? ": " : "";
    uint64_t queue_ms = f->options.queue_timeout_s * 1000;
    bool is_child = *p->delegation || p->seat.entry;
    if (p->end.job_fault && now > p->end.job_over_ms + POD_WORD_MS)
        fleet_end (f, p, "crashed", p->end.job_fault);
    if (p->seat.entry)
        look_at_peer (f, p, now);
    if (p->state == PLACED_ENDED || p->doom || p->is_new || ! is_child)
        return;
    if (p->state == PLACED_QUEUED && now > p->created_ms + queue_ms) {
        snprintf (why, sizeof why, "no place for it was free within %llu s (--queue-timeout)%s%s",
                  (unsigned long long)f->options.queue_timeout_s, colon, wait);
        p->is_failed = true;
        fleet_doom (f, p, why);
    } else if (p->state == PLACED_STARTING && now > p->pod.started_ms + FLEET_START_S * 1000u) {
        snprintf (why, sizeof why, "its pod started and did not register within %d s%s%s",
                  FLEET_START_S, colon, wait);
        p->is_failed = true;
        fleet_doom (f, p, why);
    } else if (p->state == PLACED_RUNNING && ! p->was_asked_for && ! p->seat.entry &&
               clock_monotonic_ms () - f->started_ms > ASKED_MS &&
               now > p->registered_ms + ASKED_MS) {
        fleet_doom (f, p, "the session that started it never asked after it");
    } else if (p->parent) {
        const struct job *parent = job_table_find (&f->referee->jobs, p->parent);
        const struct placed *by = fleet_find_session (f, p->parent);
        if (parent ? parent->state != JOB_RUNNING : ! by)
            fleet_doom (f, p, "the session that started it has ended");
    }
}

/* --- sessions of before --- */

/* One at a time: its capsule is read from the registry without the lock. */
static bool
restore_one (struct fleet *f)
{
    struct referee *r = f->referee;
    struct placed *p = NULL;
    pthread_mutex_lock (&r->lock);
    for (size_t i = 0; i < f->len && ! p; i++)
        if (f->items[i]->is_to_be_restored)
            p = f->items[i];
    if (p)
        p->is_to_be_restored = false;
    bool is_wanted = p && p->state == PLACED_RUNNING && p->name && p->version &&
                     ! job_table_find (&r->jobs, p->session);
    _cleanup_free_ char *job = is_wanted ? x_strdup (p->job) : NULL;
    _cleanup_free_ char *name = is_wanted ? x_strdup (p->name) : NULL;
    _cleanup_free_ char *version = is_wanted ? x_strdup (p->version) : NULL;
    pthread_mutex_unlock (&r->lock);
    if (! is_wanted)
        return p != NULL;
    _cleanup_error_ struct mur_error *err = NULL;
    struct resolved_capsule capsule = { 0 };
    if (! referee_resolve (r, name, version, &capsule, &err)) {
        diag_stderr_line ("mur-roost: the session of Job %s is not taken up: %s", job,
                          err->message);
        return true;
    }
    pthread_mutex_lock (&r->lock);
    p = fleet_find_job (f, job);
    if (p && p->state == PLACED_RUNNING && ! job_table_find (&r->jobs, p->session)) {
        uint32_t depth = p->depth < r->options.max_depth ? p->depth : r->options.max_depth;
        struct verdict v = referee_admit (r, p->session, p->parent, p->name, depth, &capsule,
                                          &(struct caller){ 0 });
        json_decref (v.body);
        if (! p->registered_ms)
            p->registered_ms = clock_unix_ms ();
    }
    pthread_mutex_unlock (&r->lock);
    capsule_manifest_free (capsule.manifest);
    return true;
}

/* --- deleting --- */

struct going {
    char *job, *uid, *pod;
};

static bool
delete_one (const struct fleet *f, const char *kind, const char *name, const char *uid,
            int64_t grace_s)
{
    _cleanup_error_ struct mur_error *err = NULL;
    _cleanup_json_ json_t *options = json_pack ("{s:s}", "propagationPolicy", "Background");
    if (uid)
        json_object_set_new (options, "preconditions", json_pack ("{s:s}", "uid", uid));
    if (grace_s >= 0)
        json_object_set_new (options, "gracePeriodSeconds", json_integer (grace_s));
    _cleanup_free_ char *path = fleet_path (f, kind, name);
    const struct kube_call call = {
        .method = "DELETE", .path = path, .body = options, .cancel = f->cancel
    };
    _cleanup_kube_answer_ struct kube_answer a = { 0 };
    if (! kube_call (f->kube, &call, &a, &err)) {
        diag_stderr_line ("mur-roost: cannot delete %s %s: %s", kind, name, err->message);
        return false;
    }
    bool is_gone = kube_answer_is_ok (&a) || a.status == 404 || a.status == 409;
    if (! is_gone)
        diag_stderr_line ("mur-roost: cannot delete %s %s: %d %s", kind, name, a.status, a.message);
    return is_gone;
}

static size_t
collect (struct fleet *f, struct going *going)
{
    size_t count = 0;
    uint64_t now = clock_unix_ms ();
    pthread_mutex_lock (&f->referee->lock);
    for (size_t i = 0; i < f->len; i++) {
        struct placed *p = f->items[i];
        look_at_one (f, p, now);
        if (p->state == PLACED_ENDED && p->is_deleted && ! p->ended_ms)
            p->ended_ms = now;
        if (p->ended_ms && now > p->ended_ms + KEPT_MS) {
            fleet_remove (f, p);
            i--;
            continue;
        }
        if (p->doom && ! p->is_deleted && count < AT_ONCE)
            going[count++] =
                (struct going){ x_strdup (p->job), p->uid ? x_strdup (p->uid) : NULL,
                                p->pod.name && ! p->pod.is_over ? x_strdup (p->pod.name) : NULL };
    }
    pthread_mutex_unlock (&f->referee->lock);
    return count;
}

static void
delete_those (struct fleet *f, struct going *going, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        /* The pod first: it is what runs, and told to end at once. */
        bool is_gone =
            (! going[i].pod || delete_one (f, "pods", going[i].pod, NULL, POD_GRACE_S)) &&
            delete_one (f, "jobs", going[i].job, going[i].uid, -1);
        pthread_mutex_lock (&f->referee->lock);
        struct placed *p = is_gone ? fleet_find_job (f, going[i].job) : NULL;
        if (p) {
            p->is_deleted = true;
            fleet_end (f, p, p->is_failed ? "error" : "terminated", p->doom);
        }
        pthread_mutex_unlock (&f->referee->lock);
        free (going[i].job);
        free (going[i].uid);
        free (going[i].pod);
    }
}

static void
tell_restored (struct fleet *f)
{
    pthread_mutex_lock (&f->referee->lock);
    if (! f->is_restored) {
        f->is_restored = true;
        fleet_tell (f, NULL);
    }
    pthread_mutex_unlock (&f->referee->lock);
}

void *
fleet_tend (void *fleet)
{
    struct fleet *f = fleet;
    struct going going[AT_ONCE];
    while (! cancel_is_raised (f->cancel)) {
        pthread_mutex_lock (&f->referee->lock);
        bool is_whole = f->jobs_listed && f->pods_listed;
        pthread_mutex_unlock (&f->referee->lock);
        while (restore_one (f) || (is_whole && fleet_team_launch (f)))
            ;
        if (is_whole)
            tell_restored (f);
        if (is_whole)
            delete_those (f, going, collect (f, going));
        cancel_sleep (f->cancel, LOOK_MS);
    }
    return NULL;
}
