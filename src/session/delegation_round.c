/* SPDX-License-Identifier: Apache-2.0
 *
 * The wait of a task for the children it delegated to, the round that goes on with their outcomes,
 * and their end with the task (spec/spawn.md A18, spec/session.md 4.5 step 4). See delegations.h.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "door/streams.h"
#include "session/attempt.h"
#include "session/delegations.h"
#include "session/ending.h"

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

/* --- closing one ------------------------------------------------------------------------------ */

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

/* --- ending all ------------------------------------------------------------------------------- */

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
static void
end_all (struct delegations *set, const char *reason)
{
    size_t count;
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

static const char *
reason_of_end (const struct running_task *t, uint64_t turns_left)
{
    return t->ending == ATTEMPT_CANCELED  ? "the task was canceled"
           : t->ending != ATTEMPT_OK      ? "the task failed"
           : cancel_is_raised (t->cancel) ? "the task was stopped"
           : ! turns_left                 ? "inference.max_turns left no turn to hear of it"
                                          : "the task ended";
}

/* --- waiting ---------------------------------------------------------------------------------- */

static void
wake (void *ctx)
{
    delegations_poke (ctx);
}

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

static size_t
count_out (struct delegations *set)
{
    size_t count, out = 0;
    _cleanup_free_ struct delegation **all = outstanding (set, &count);
    for (size_t i = 0; i < count; i++)
        out += is_out (set, all[i]);
    return out;
}

/* Until something was told since <*seen>, or for a while. */
static void
sleep_until_news (struct delegations *set, uint64_t *seen)
{
    uint64_t at_ms = clock_monotonic_ms () + LOOK_MS;
    struct timespec at = { (time_t)(at_ms / 1000), (long)(at_ms % 1000) * 1000000 };
    int status = 0;
    pthread_mutex_lock (&set->lock);
    while (set->news == *seen && status != ETIMEDOUT)
        status = pthread_cond_timedwait (&set->changed, &set->lock, &at);
    *seen = set->news;
    pthread_mutex_unlock (&set->lock);
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

static void
announce (struct session *s, const struct running_task *t, size_t count)
{
    char text[96];
    snprintf (text, sizeof text, "waiting for delegate-task: %zu delegation%s outstanding", count,
              count == 1 ? "" : "s");
    streams_working (registry_streams (s->registry), t->task, text, 0);
}

/* True when nothing is outstanding any more, false when the task was stopped. */
static bool
wait_for_all (struct delegations *set, struct running_task *t)
{
    size_t said = 0, count;
    uint64_t seen = 0, listener = cancel_add (t->cancel, wake, set);
    while ((count = count_out (set)) && ! cancel_is_raised (t->cancel)) {
        if (count != said)
            announce (set->session, t, count);
        said = count;
        sleep_until_news (set, &seen);
        apply_backstop (set);
    }
    cancel_remove (t->cancel, listener);
    return ! cancel_is_raised (t->cancel);
}

/* --- going on --------------------------------------------------------------------------------- */

static void
go_on (struct delegations *set, struct running_task *t, uint64_t waited_ms)
{
    size_t count;
    struct session *s = set->session;
    _cleanup_free_ struct delegation **all = outstanding (set, &count);
    _cleanup_buf_ struct buf text = { 0 };
    _cleanup_json_ json_t *ids = json_array ();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new (ids, json_string (all[i]->id.text));
        if (i)
            buf_puts (&text, "\n\n");
        close_from_record (set, all[i], &text);
    }
    _cleanup_free_ char *delegations = json_text (ids, JSON_TEXT_ORDERED);
    uint64_t left = attempt_turns_left (s, t);
    TRACE (s->trace, NULL, task_continued, .task_id = t->task->id,
           .continuation_number = ++t->continuations, .member_calls = "[]",
           .delegations = delegations, .waited_ms = waited_ms,
           .turns_remaining = { left != UINT64_MAX, (int64_t)left });
    attempt_continue_with (s, t, text.data ? text.data : "");
}

bool
delegations_continue (struct session *s, struct running_task *t)
{
    size_t count = 0;
    struct delegations *set = s->delegations;
    if (set)
        free (outstanding (set, &count));
    if (! count)
        return false;
    uint64_t left = attempt_turns_left (s, t), from_ms = clock_monotonic_ms ();
    bool may_go_on = t->ending == ATTEMPT_OK && left && attempt_let_answer_stand (s, t);
    if (may_go_on && wait_for_all (set, t)) {
        t->continued_stopped_by = NULL;
        go_on (set, t, clock_monotonic_ms () - from_ms);
        return true;
    }
    if (may_go_on)
        attempt_cancel (s, t, "delegation", TRACE_NO_NUM);
    end_all (set, reason_of_end (t, left));
    return false;
}
