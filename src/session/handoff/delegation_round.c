/* SPDX-License-Identifier: Apache-2.0 */
#include "session/handoff/delegation_round.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/condition.h"
#include "session/handoff/delegation_outcome.h"
#include "session/handoff/delegations_internal.h"

#include <errno.h>
#include <string.h>

#define LOOK_MS        500  /* between looks at what has no notice of its own */
#define EXIT_WAIT_MS   5000 /* a child that reported exits within that */
#define RECORD_WAIT_MS 2000
#define BACKSTOP_MS    30000 /* past the bound, its watcher has failed */

#define BACKSTOP_DETAIL                                                                            \
    "ended by the session that delegated to it: the delegation deadline had passed and nothing "   \
    "was "                                                                                         \
    "heard of it"

/* --- closing one --- */

/* Its outcome has arrived: lets it finish exiting, then lets go of it. */
static void
await_exit (struct delegation *d)
{
    if (d->watch) {
        watch_wait (d->watch, EXIT_WAIT_MS);
        watch_leave (d->watch);
    } else {
        uint64_t end_ms = clock_monotonic_ms () + EXIT_WAIT_MS;
        while (! mur_child_has_exited (d->child, NULL) && clock_monotonic_ms () < end_ms)
            usleep (50000);
    }
    mur_child_end (d->child);
}

/* Traces what the record says, appends it to <text> (may be NULL), frees. */
static void
close_from_record (struct delegations *set, struct delegation *d, struct buf *text)
{
    _cleanup_free_ char *reason = NULL;
    await_exit (d);
    const char *status = delegation_append_outcome (set->session, d, text, &reason);
    delegation_trace (set->session, d, true, status, reason);
    delegations_remove (set, d);
    delegation_free (d);
}

/* Those of the running task that wait for a completion. A plan's own are not among them. Owned. */
static struct delegation **
outstanding (struct delegations *set, size_t *count)
{
    pthread_mutex_lock (&set->lock);
    struct delegation **all = x_new_array (struct delegation *, set->len + 1);
    *count = 0;
    for (size_t i = 0; i < set->len; i++)
        if (! set->items[i]->is_blocking)
            all[(*count)++] = set->items[i];
    pthread_mutex_unlock (&set->lock);
    return all;
}

/* --- ending all --- */

static bool
abandon (struct delegations *set, struct delegation *d)
{
    pthread_mutex_lock (&set->lock);
    d->is_abandoned = ! d->has_arrived;
    bool is_abandoned = d->is_abandoned;
    pthread_mutex_unlock (&set->lock);
    return is_abandoned;
}

static void
end_one (struct delegations *set, struct delegation *d, const char *reason)
{
    mur_child_end (d->child);
    if (d->watch)
        watch_wait (d->watch, RECORD_WAIT_MS);
    if (! child_was_ended (d->child)) { /* it had ended by itself: that is its outcome */
        close_from_record (set, d, NULL);
        return;
    }
    delegation_trace (set->session, d, true, "terminated", reason);
    delegations_remove (set, d);
    delegation_free (d);
}

/* All signalled first: they share one grace. */
void
delegations_end (struct delegations *set, const char *reason)
{
    size_t count;
    if (! set)
        return;
    _cleanup_free_ struct delegation **all = outstanding (set, &count);
    for (size_t i = 0; i < count; i++)
        if (abandon (set, all[i]))
            mur_child_begin_ending (all[i]->child);
    for (size_t i = 0; i < count; i++)
        if (all[i]->is_abandoned)
            end_one (set, all[i], reason);
        else
            close_from_record (set, all[i], NULL);
}

/* --- waiting --- */

/* False once nothing more will be heard of it: its completion came, its watcher is through, or it
 * never had one and the child is gone. */
static bool
is_out (struct delegations *set, const struct delegation *d)
{
    pthread_mutex_lock (&set->lock);
    bool has_arrived = d->has_arrived;
    pthread_mutex_unlock (&set->lock);
    if (has_arrived)
        return false;
    return d->watch ? ! watch_is_done (d->watch) : ! mur_child_has_exited (d->child, NULL);
}

size_t
delegations_out (struct delegations *set)
{
    size_t count, out = 0;
    if (! set)
        return 0;
    _cleanup_free_ struct delegation **all = outstanding (set, &count);
    for (size_t i = 0; i < count; i++)
        out += is_out (set, all[i]);
    return out;
}

/* Its bound passed long ago and nothing was heard: ended and recorded here. */
static void
apply_backstop (struct delegations *set)
{
    size_t count;
    _cleanup_free_ struct delegation **all = outstanding (set, &count);
    uint64_t allowed_ms = set->bound_secs * 1000 + BACKSTOP_MS, now_ms = clock_monotonic_ms ();
    for (size_t i = 0; i < count; i++) {
        struct delegation *d = all[i];
        if (now_ms - d->ready_ms < allowed_ms || ! is_out (set, d))
            continue;
        if (d->watch)
            watch_leave (d->watch);
        mur_child_end (d->child);
        watch_record_end (&d->watched, BACKSTOP_DETAIL);
        delegations_take (set, d);
    }
}

void
delegations_sleep (struct delegations *set, uint64_t *seen)
{
    condition_wait_news (&set->changed, &set->lock, &set->news, seen,
                         clock_monotonic_ms () + LOOK_MS);
    apply_backstop (set);
}

/* --- going on --- */

size_t
delegations_held (struct delegations *set)
{
    size_t count = 0;
    if (set)
        free (outstanding (set, &count));
    return count;
}

void
delegations_deliver (struct delegations *set, json_t *ids, struct buf *text)
{
    size_t count;
    if (! set)
        return;
    _cleanup_free_ struct delegation **all = outstanding (set, &count);
    for (size_t i = 0; i < count; i++) {
        json_array_append_new (ids, json_string (all[i]->id.text));
        if (i)
            buf_puts (text, "\n\n");
        close_from_record (set, all[i], text);
    }
}
