/* SPDX-License-Identifier: Apache-2.0 */
#include "session/handoff/delegations.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/condition.h"
#include "door/tasks/tasks.h"
#include "session/handoff/delegation_outcome.h"
#include "session/handoff/delegations_internal.h"
#include "session/state/session.h"

#include <string.h>
#include <strings.h>

#define RECORD_WAIT_MS 2000

/* --- one --- */

const char *
delegation_bare (const struct delegation *d)
{
    const char *slash = strrchr (d->capsule, '/');
    return slash ? slash + 1 : d->capsule;
}

struct delegation *
delegation_new (const char *capsule, const char *version, const struct delegate_ask *ask,
                bool is_blocking)
{
    struct delegation *d = x_new0 (struct delegation);
    d->id = id_new ("dlg_");
    d->capsule = x_strdup (capsule);
    d->version = x_strdup (version);
    d->task_id = ask->running->id;
    d->is_blocking = is_blocking;
    d->started_ms = clock_monotonic_ms ();
    return d;
}

void
delegation_free (struct delegation *d)
{
    if (! d)
        return;
    watch_free (d->watch);
    mur_child_free (d->child);
    free (d->capsule);
    free (d->version);
    free (d->child_task_id);
    free (d->url);
    free (d);
}

void
delegation_trace (struct session *s, const struct delegation *d, bool has_id, const char *outcome,
                  const char *reason)
{
    _cleanup_free_ char *said = reason ? trace_free_text (s->trace, reason) : NULL;
    TRACE (s->trace, NULL, delegation, .capsule = d->capsule, .version = d->version,
           .delegation_id = has_id ? d->id.text : NULL,
           .child_session_id = d->child ? mur_child_session_id (d->child) : NULL,
           .duration_ms = clock_monotonic_ms () - d->started_ms, .outcome = outcome,
           .reason = said);
}

/* --- the set --- */

uint64_t
delegation_bound_secs (const struct session *s)
{
    const char *text = getenv ("MURMUR_DELEGATION_TIMEOUT_SECS");
    char *end = NULL;
    unsigned long long secs = text && *text >= '0' && *text <= '9' ? strtoull (text, &end, 10) : 0;
    bool is_set = secs > 0 && ! *end && secs <= UINT32_MAX;
    uint64_t declared = s->policy->lifecycle.delegation_deadline_secs.value;
    return is_set ? secs : declared < UINT32_MAX ? declared : UINT32_MAX;
}

struct delegations *
delegations_new (struct session *s)
{
    struct delegations *set = x_new0 (struct delegations);
    set->session = s;
    set->bound_secs = delegation_bound_secs (s);
    condition_init (&set->changed);
    pthread_mutex_init (&set->lock, NULL);
    return set;
}

void
delegations_free (struct delegations *set)
{
    if (! set)
        return;
    for (size_t i = 0; i < set->len; i++)
        delegation_free (set->items[i]);
    free (set->items);
    strv_free (&set->taken);
    pthread_cond_destroy (&set->changed);
    pthread_mutex_destroy (&set->lock);
    free (set);
}

uint64_t
delegations_bound_secs (const struct delegations *set)
{
    return set->bound_secs;
}

/* Under the lock. */
static void
delegations_tell (struct delegations *set)
{
    set->news++;
    pthread_cond_broadcast (&set->changed);
}

void
delegations_add (struct delegations *set, struct delegation *d)
{
    pthread_mutex_lock (&set->lock);
    x_grow (set->items, set->len, set->cap);
    size_t at = set->len++;
    for (; at && strcmp (set->items[at - 1]->id.text, d->id.text) > 0; at--)
        set->items[at] = set->items[at - 1];
    set->items[at] = d;
    pthread_mutex_unlock (&set->lock);
}

void
delegations_remove (struct delegations *set, struct delegation *d)
{
    pthread_mutex_lock (&set->lock);
    for (size_t i = 0; i < set->len; i++)
        if (set->items[i] == d) {
            memmove (&set->items[i], &set->items[i + 1],
                     (set->len - i - 1) * sizeof (set->items[0]));
            set->len--;
            break;
        }
    if (d->has_arrived)
        strv_push (&set->taken, d->id.text);
    pthread_mutex_unlock (&set->lock);
}

void
delegations_poke (void *ctx)
{
    struct delegations *set = ctx;
    pthread_mutex_lock (&set->lock);
    delegations_tell (set);
    pthread_mutex_unlock (&set->lock);
}

void
delegations_drop (struct delegations *set, struct delegation *d)
{
    pthread_mutex_lock (&set->lock);
    d->is_abandoned = true;
    pthread_mutex_unlock (&set->lock);
    mur_child_end (d->child);
    if (d->watch)
        watch_wait (d->watch, RECORD_WAIT_MS);
    delegations_remove (set, d);
    delegation_free (d);
}

/* --- what others ask --- */

static bool
is_out_for (const struct delegation *d, const char *task_id)
{
    return ! task_id || str_eq (d->task_id, task_id);
}

void
delegations_list (struct delegations *set, const char *task_id, struct strv *ids)
{
    if (! set)
        return;
    pthread_mutex_lock (&set->lock);
    for (size_t i = 0; i < set->len; i++)
        if (is_out_for (set->items[i], task_id))
            strv_push (ids, set->items[i]->id.text);
    pthread_mutex_unlock (&set->lock);
}

struct delegation *
delegations_find (struct delegations *set, const char *id)
{
    struct delegation *found = NULL;
    pthread_mutex_lock (&set->lock);
    for (size_t i = 0; i < set->len; i++)
        if (str_eq (set->items[i]->id.text, id))
            found = set->items[i];
    pthread_mutex_unlock (&set->lock);
    return found;
}

void
delegations_append_residue (struct delegations *set, const char *task_id, json_t *items)
{
    if (! set)
        return;
    pthread_mutex_lock (&set->lock);
    for (size_t i = 0; i < set->len; i++) {
        const struct delegation *d = set->items[i];
        if (! is_out_for (d, task_id) || mur_child_has_exited (d->child, NULL))
            continue;
        json_t *item = json_object ();
        json_set_string (item, "kind", "delegation");
        json_set_string (item, "delegation_id", d->id.text);
        json_set_string (item, "capsule", d->capsule);
        json_set_string (item, "version", d->version);
        json_set_string (item, "child_session_id", mur_child_session_id (d->child));
        json_set_string (item, "child_workdir", mur_child_workdir (d->child));
        json_array_append_new (items, item);
    }
    pthread_mutex_unlock (&set->lock);
}

/* Under the lock. */
static bool
take (struct delegations *set, struct delegation *d)
{
    if (d->has_arrived)
        return true; /* a retry */
    if (d->is_blocking || d->is_abandoned || mur_child_is_being_ended (d->child))
        return false;
    d->has_arrived = true;
    delegations_tell (set);
    return true;
}

bool
delegations_take (struct delegations *set, struct delegation *d)
{
    pthread_mutex_lock (&set->lock);
    bool is_taken = take (set, d);
    pthread_mutex_unlock (&set->lock);
    return is_taken;
}

bool
delegations_take_completion (void *ctx, const char *delegation_id)
{
    struct delegations *set = ctx;
    bool is_taken = false;
    if (! set)
        return false;
    pthread_mutex_lock (&set->lock);
    for (size_t i = 0; i < set->len; i++)
        if (strcasecmp (set->items[i]->id.text, delegation_id) == 0)
            is_taken = take (set, set->items[i]);
    for (size_t i = 0; i < set->taken.len; i++)
        is_taken |= strcasecmp (set->taken.items[i], delegation_id) == 0;
    pthread_mutex_unlock (&set->lock);
    return is_taken;
}
