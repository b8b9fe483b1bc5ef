/* SPDX-License-Identifier: Apache-2.0 */
#include "session/handoff/delegate.h"
#include "fs/paths.h"
#include "spawn/child/launch.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "door/door.h"
#include "door/tasks/tasks.h"
#include "session/handoff/delegate_internal.h"
#include "session/handoff/handoff.h"
#include "session/state/deadline.h"
#include "session/state/session.h"
#include "spawn/child/approval.h"
#include "spawn/child/child_door.h"
#include "spawn/child/environment.h"
#include "spawn/child/packed.h"
#include "trace/export/otel.h"

#include <string.h>

#define START_MARGIN_S 60 /* beyond what mur-roost lets the start of a child elsewhere take */

static const char *const status_names[] = { "started",  "completed", "timed_out",
                                            "canceled", "failed",    "refused" };

const char *
delegate_status_name (enum delegate_status status)
{
    return status_names[status];
}

void
delegate_result_clear (struct delegate_result *r)
{
    free (r->delegation_id);
    free (r->session_id);
    free (r->capsule);
    free (r->version);
    free (r->child_workdir);
    free (r->output);
    *r = (struct delegate_result){ 0 };
}

char *
delegate_result_json (const struct delegate_result *r)
{
    _cleanup_json_ json_t *o = json_object ();
    json_set_string (o, "delegation_id", r->delegation_id);
    json_set_string (o, "session_id", r->session_id);
    json_set_string (o, "capsule", r->capsule);
    json_set_string (o, "version", r->version);
    json_set_string (o, "status", status_names[r->status]);
    if (r->status == DELEGATE_STARTED)
        json_set_string (o, "child_workdir", r->child_workdir);
    else
        json_set_string (o, "output", r->output ? r->output : "");
    return json_text (o, JSON_TEXT_SORTED);
}

void
delegate_describe (const struct delegation *d, struct delegate_result *out)
{
    out->delegation_id = x_strdup (d->id.text);
    if (! d->child)
        return;
    out->session_id = x_strdup (mur_child_session_id (d->child));
    out->child_workdir = x_strdup (mur_child_workdir (d->child));
}

/* --- the call --- */

/* One call on its way; what it comes to is written to <out>. */
struct handing {
    struct session *s;
    const struct delegate_ask *ask;
    struct delegation *d; /* the caller's until it is added to the set */
    struct delegate_result *out;
    struct approval approval;
    struct packed packed;
    bool has_id; /* there was a launch, so the id means something */
};

/* The entry of spawn.allow with that bare part, else the name as it is: mur-roost refuses it in its
 * own words. */
static const char *
full_name (const struct session *s, const char *bare)
{
    const struct str_list *allowed = &s->policy->spawn_allow;
    for (size_t i = 0; i < allowed->len; i++) {
        const char *slash = strrchr (allowed->items[i], '/');
        if (slash && str_eq (slash + 1, bare))
            return allowed->items[i];
    }
    return bare;
}

/* Ends the call without a child. */
static bool
delegate_end (struct handing *h, enum delegate_status status, const char *reason)
{
    bool is_canceled = status == DELEGATE_FAILED && cancel_is_raised (h->ask->cancel);
    delegation_trace (h->s, h->d, h->has_id, status_names[status], reason);
    h->out->status = is_canceled ? DELEGATE_CANCELED : status;
    h->out->output = x_strdup (reason);
    if (h->has_id)
        h->out->delegation_id = x_strdup (h->d->id.text);
    return false;
}

/* The outcome would have nowhere to arrive without these. */
static bool
check_addressable (struct handing *h)
{
    const char *lacks = ! h->s->door                       ? "its own door"
                        : ! h->s->id.text[0]               ? "a session id"
                        : ! h->ask->running->context_id[0] ? "a context id"
                                                           : NULL;
    if (! lacks)
        return true;
    _cleanup_free_ char *reason =
        x_asprintf ("this session lacks %s: an outcome would have nowhere to arrive", lacks);
    return delegate_end (h, DELEGATE_FAILED, reason);
}

static uint64_t
deadline_for_child (const struct session *s)
{
    if (! s->deadline->is_set)
        return 0;
    return s->deadline->is_inherited ? s->asked->time.inherited_deadline_ms
                                     : clock_unix_ms () + deadline_left_ms (s->deadline);
}

static bool
wants_snapshot (const struct handing *h)
{
    const struct str_list *listed = &h->s->policy->files.snapshot;
    for (size_t i = 0; i < listed->len; i++)
        if (str_eq (listed->items[i], h->d->capsule))
            return true;
    return false;
}

static bool
ask_roost (struct handing *h)
{
    _cleanup_error_ struct mur_error *err = NULL;
    struct session *s = h->s;
    if (! handoff_credential (s))
        return delegate_end (h, DELEGATE_REFUSED,
                             "this session is not registered with mur-roost, as "
                             "capabilities.spawn.allow would have it");
    bool is_elsewhere = handoff_is_elsewhere (s);
    if (is_elsewhere && wants_snapshot (h))
        return delegate_end (
            h, DELEGATE_FAILED,
            "capabilities.spawn.workdir_snapshot: the work folder is not carried to "
            "a child on another machine");
    const struct approval_elsewhere elsewhere = {
        .delegation_id = h->d->id.text,
        .context_id = h->ask->running->context_id,
        .bound_secs = delegation_bound_secs (s),
        .deadline_ms = deadline_for_child (s),
    };
    if (approval_ask (s->http, handoff_roost_url (s), handoff_credential (s), h->d->capsule,
                      h->d->version, is_elsewhere ? &elsewhere : NULL, h->ask->cancel, &h->approval,
                      &err)) {
        h->has_id = true;
        return true;
    }
    return delegate_end (h, cancel_is_raised (h->ask->cancel) ? DELEGATE_FAILED : DELEGATE_REFUSED,
                         err->message);
}

/* From the store a child launched by name takes its capsule from. */
static bool
read_packed (struct handing *h)
{
    _cleanup_error_ struct mur_error *err = NULL;
    _cleanup_stores_ struct stores *stores = stores_new (NULL, &err);
    if (stores && packed_read (stores, h->d->capsule, h->d->version, &h->packed, &err))
        return true;
    _cleanup_free_ char *reason =
        x_asprintf ("%s@%s: its capabilities.env.allow cannot be read: %s", h->d->capsule,
                    h->d->version, err->message);
    return delegate_end (h, DELEGATE_FAILED, reason);
}

/* --- the launch --- */

/* The door this session hears completions at. Owned. */
static char *
own_url (const struct session *s)
{
    return x_asprintf ("http://%s", door_url (s->door));
}

static bool
launch (struct handing *h)
{
    struct session *s = h->s;
    struct delegation *d = h->d;
    _cleanup_error_ struct mur_error *err = NULL;
    _cleanup_strv_ struct strv env = { 0 };
    const struct str_list *own_env = &s->policy->env_allow;
    environment_clamp ((const char *const *)h->packed.env_allow.items, h->packed.env_allow.len,
                       own_env->items, own_env->len, &env);
    _cleanup_free_ char *url = own_url (s);
    _cleanup_json_ json_t *approvals = approval_rules_json (&s->policy->approvals, true);
    _cleanup_free_ char *spawner =
        spawner_text (s->id.text, h->ask->running->context_id, d->id.text,
                      d->is_blocking ? NULL : url, approvals);
    const struct mur_child_launch l = {
        .approval = secret_reveal (h->approval.token),
        .capsule = d->capsule,
        .version = d->version,
        .parent_records_dir = s->places.dirs.records_path,
        .roost_url = handoff_roost_url (s),
        .env_allow = (const char *const *)env.items,
        .spawner = spawner,
        .formation_id = s->asked->launcher.formation_id,
        .inherited_deadline_ms = deadline_for_child (s),
        .snapshot_source = wants_snapshot (h) ? s->places.work_path : NULL,
        .snapshot_limit_bytes = h->packed.workdir_max_bytes,
        .is_remote = h->approval.is_launched,
        .readiness_timeout_ms =
            h->approval.is_launched ? (h->approval.wait_secs + START_MARGIN_S) * 1000 : 0,
    };
    d->child = child_launch (&l, h->ask->cancel, &err);
    d->ready_ms = clock_monotonic_ms ();
    return d->child || delegate_end (h, DELEGATE_FAILED, err->message);
}

static void
start_line (struct session *s, const struct delegation *d)
{
    const char *workdir = mur_child_workdir (d->child), *records = s->places.dirs.records_path;
    bool is_below = fs_path_is_within (workdir, records);
    TRACE (s->trace, NULL, delegation_start, .delegation_id = d->id.text, .capsule = d->capsule,
           .version = d->version, .child_session_id = mur_child_session_id (d->child),
           .child_workdir = is_below ? workdir + strlen (records) + 1 : workdir,
           .child_records_dir = mur_child_records_dir (d->child),
           .workdir_snapshot = mur_child_snapshot_report (d->child));
}

/* --- its end, and its task --- */

static void
watch_child (struct session *s, struct delegation *d, const struct task *running)
{
    d->url = own_url (s);
    d->watched = (struct watched){
        .child = d->child,
        .http = s->http,
        .delegation_id = d->id.text,
        .capsule = d->capsule,
        .version = d->version,
        .address = { .url = d->url, .context_id = running->context_id, .session_id = s->id.text },
        .started_ms = d->started_ms,
        .bound_secs = delegations_bound_secs (handoff_delegations (s)),
        .on_done = delegations_poke,
        .ctx = handoff_delegations (s),
    };
    if (! d->is_blocking)
        d->watch = watch_start (&d->watched);
}

/* A task that was cancelled meanwhile ends this child with its others, in one grace; a step of a
 * plan ends its own. */
static bool
give_up (struct handing *h, enum delegate_status status, const char *reason)
{
    struct delegation *d = h->d;
    delegate_describe (d, h->out);
    h->out->status = status;
    h->out->output = x_strdup (reason);
    if (status == DELEGATE_CANCELED && ! d->is_blocking)
        return false;
    mur_child_begin_ending (d->child);
    delegation_trace (h->s, d, true, status == DELEGATE_CANCELED ? "terminated" : "failed", reason);
    delegations_drop (handoff_delegations (h->s), d);
    return false;
}

static bool
send_task (struct handing *h)
{
    _cleanup_error_ struct mur_error *err = NULL;
    struct delegation *d = h->d;
    char traceparent[TRACEPARENT_LEN + 1];
    bool is_traced = otel_traceparent (h->s->otel, traceparent);
    bool is_sent =
        child_door_send (h->s->http, d->child, d->id.text, h->ask->task,
                         is_traced ? traceparent : NULL, h->ask->cancel, &d->child_task_id, &err);
    if (cancel_is_raised (h->ask->cancel))
        return give_up (h, DELEGATE_CANCELED,
                        "the call was cancelled while the child was handed its task");
    if (is_sent)
        return true;
    _cleanup_free_ char *reason = x_asprintf ("%s@%s: %s", d->capsule, d->version, err->message);
    return give_up (h, DELEGATE_FAILED, reason);
}

struct delegation *
delegate_hand_over (struct session *s, const struct delegate_ask *ask, bool is_blocking,
                    struct delegate_result *out)
{
    struct handing h = { .s = s, .ask = ask, .out = out };
    const char *name = full_name (s, ask->capsule);
    h.d = delegation_new (name, ask->version, ask, is_blocking);
    out->capsule = x_strdup (delegation_bare (h.d));
    out->version = x_strdup (ask->version);
    bool is_ready = check_addressable (&h) && ask_roost (&h) && read_packed (&h) && launch (&h);
    approval_clear (&h.approval);
    packed_clear (&h.packed);
    if (! is_ready) {
        delegation_free (h.d);
        return NULL;
    }
    start_line (s, h.d);
    delegations_add (handoff_delegations (s), h.d);
    watch_child (s, h.d, ask->running);
    return send_task (&h) ? h.d : NULL;
}

void
delegate_start (struct session *s, const struct delegate_ask *ask, struct delegate_result *out)
{
    *out = (struct delegate_result){ 0 };
    struct delegation *d = delegate_hand_over (s, ask, false, out);
    if (! d)
        return;
    out->status = DELEGATE_STARTED;
    delegate_describe (d, out);
}
