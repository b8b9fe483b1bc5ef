/* SPDX-License-Identifier: Apache-2.0 */
#include "spawn/report/watch.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/condition.h"
#include "base/diag.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#define POLL_MS         100
#define ENDED_BY_PARENT "ended by the session that delegated to it"

struct watch {
    struct watched what;
    uint64_t bound_at_ms; /* monotonic */
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    bool is_left, is_done;
};

/* --- what is recorded --- */

static struct completion
record_of (const struct watched *x, enum completion_status status, const char *detail,
           struct arena *arena)
{
    return (struct completion){
        .delegation_id = x->delegation_id,
        .capsule_name = x->capsule,
        .capsule_version = x->version,
        .session_id = mur_child_session_id (x->child),
        .status = status,
        .result_path = completion_result_path (
            mur_child_records_fd (x->child), mur_child_records_dir (x->child),
            mur_child_workdir_fd (x->child), mur_child_workdir (x->child), arena),
        .workdir = mur_child_workdir (x->child),
        .duration_ms = clock_monotonic_ms () - x->started_ms,
        .detail = detail,
        .reported_by = REPORTED_BY_LAUNCHER,
    };
}

static void
say_fault (const struct watched *x, const char *what, const char *why)
{
    diag_stderr_line ("[capsule-runtime] delegation %s: %s: %s", x->delegation_id, what, why);
}

static void
report (const struct watched *x, struct completion *c, struct arena *arena)
{
    struct mur_error *err = NULL;
    if (! completion_report (mur_child_records_fd (x->child), x->http, &x->address, c, arena, &err))
        say_fault (x, "its end was not recorded", err->message);
    mur_error_free (err);
}

/* The child reported itself and its notice did not arrive: once more, then never again. */
static void
deliver_again (const struct watched *x, struct completion *c, struct arena *arena)
{
    struct mur_error *err = NULL;
    const char *reason = NULL;
    c->is_delivered = completion_post (x->http, &x->address, c, arena, &reason);
    c->delivery_error = c->is_delivered ? NULL : reason;
    if (! completion_write (mur_child_records_fd (x->child), c, &err))
        say_fault (x, "its record was not brought up to date", err->message);
    mur_error_free (err);
    if (! c->is_delivered)
        say_fault (x, "its completion was not delivered", reason);
}

static void
report_crash (const struct watched *x, int status, struct arena *arena)
{
    _cleanup_free_ char *how = child_status_text (status);
    _cleanup_free_ char *tail = mur_child_stderr_tail (x->child);
    const char *detail = arena_printf (arena, "%s%s%s", how, *tail ? "\n" : "", tail);
    struct completion c = record_of (x, COMPLETION_CRASHED, detail, arena);
    report (x, &c, arena);
}

/* It ended by itself. */
static void
settle_exit (const struct watched *x, int status)
{
    _cleanup_arena_ struct arena *arena = arena_new ();
    struct completion c;
    bool has_record = completion_read (mur_child_records_fd (x->child), arena, &c, NULL) &&
                      str_eq (c.delegation_id, x->delegation_id);
    if (! has_record)
        report_crash (x, status, arena);
    else if (! c.is_delivered)
        deliver_again (x, &c, arena);
}

/* Its parent ended it: that is the outcome, whatever it wrote meanwhile, and nobody waits for a
 * notice. */
void
watch_record_end (const struct watched *x, const char *detail)
{
    _cleanup_arena_ struct arena *arena = arena_new ();
    struct mur_error *err = NULL;
    struct completion c = record_of (x, COMPLETION_TERMINATED, detail, arena);
    if (! completion_write (mur_child_records_fd (x->child), &c, &err))
        say_fault (x, "its end was not recorded", err->message);
    mur_error_free (err);
}

static void
settle_bound (const struct watched *x)
{
    _cleanup_arena_ struct arena *arena = arena_new ();
    const char *detail =
        arena_printf (arena, "ended at the delegation deadline: it was not done within %llus",
                      (unsigned long long)x->bound_secs);
    struct completion c = record_of (x, COMPLETION_TERMINATED, detail, arena);
    report (x, &c, arena);
}

/* --- the thread --- */

/* Sleeps one poll. False when the child was left. */
static bool
sleep_one_poll (struct watch *w)
{
    uint64_t at_ms = clock_monotonic_ms () + POLL_MS;
    struct timespec at = { (time_t)(at_ms / 1000), (long)(at_ms % 1000) * 1000000 };
    pthread_mutex_lock (&w->lock);
    int status = 0;
    while (! w->is_left && status != ETIMEDOUT)
        status = pthread_cond_timedwait (&w->changed, &w->lock, &at);
    bool goes_on = ! w->is_left;
    pthread_mutex_unlock (&w->lock);
    return goes_on;
}

static void
watch_to_the_end (struct watch *w)
{
    struct mur_child *c = w->what.child;
    bool is_over_bound = false;
    int status;
    while (! mur_child_has_exited (c, &status)) {
        if (! sleep_one_poll (w))
            return;
        if (clock_monotonic_ms () < w->bound_at_ms || mur_child_is_being_ended (c))
            continue;
        is_over_bound = true;
        mur_child_end (c);
    }
    if (! child_was_ended (c))
        settle_exit (&w->what, status);
    else if (is_over_bound)
        settle_bound (&w->what);
    else
        watch_record_end (&w->what, ENDED_BY_PARENT);
}

static void *
watch_thread (void *arg)
{
    struct watch *w = arg;
    watch_to_the_end (w);
    pthread_mutex_lock (&w->lock);
    w->is_done = true;
    pthread_cond_broadcast (&w->changed);
    pthread_mutex_unlock (&w->lock);
    w->what.on_done (w->what.ctx);
    return NULL;
}

struct watch *
watch_start (const struct watched *what)
{
    struct watch *w = x_new0 (struct watch);
    w->what = *what;
    w->bound_at_ms = clock_monotonic_ms () + what->bound_secs * 1000;
    condition_init (&w->changed);
    pthread_mutex_init (&w->lock, NULL);
    int failed = pthread_create (&w->thread, NULL, watch_thread, w);
    if (! failed)
        return w;
    say_fault (what, "nothing watches for its end", strerror (failed));
    pthread_cond_destroy (&w->changed);
    pthread_mutex_destroy (&w->lock);
    free (w);
    return NULL;
}

bool
watch_is_done (struct watch *w)
{
    return watch_wait (w, 0);
}

bool
watch_wait (struct watch *w, uint64_t timeout_ms)
{
    uint64_t at_ms = clock_monotonic_ms () + timeout_ms;
    struct timespec at = { (time_t)(at_ms / 1000), (long)(at_ms % 1000) * 1000000 };
    pthread_mutex_lock (&w->lock);
    int status = 0;
    while (! w->is_done && timeout_ms && status != ETIMEDOUT)
        status = pthread_cond_timedwait (&w->changed, &w->lock, &at);
    bool is_done = w->is_done;
    pthread_mutex_unlock (&w->lock);
    return is_done;
}

void
watch_leave (struct watch *w)
{
    pthread_mutex_lock (&w->lock);
    w->is_left = true;
    pthread_cond_broadcast (&w->changed);
    pthread_mutex_unlock (&w->lock);
}

void
watch_free (struct watch *w)
{
    if (! w)
        return;
    watch_leave (w);
    pthread_join (w->thread, NULL);
    pthread_cond_destroy (&w->changed);
    pthread_mutex_destroy (&w->lock);
    free (w);
}
