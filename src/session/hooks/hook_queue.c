/* SPDX-License-Identifier: Apache-2.0
 *
 * Async hooks: a bounded queue and one worker each (docs/spec/session.md 9.3).
 *
 * Always true: events arrive in order; what the hook answers is discarded; after drain no thread
 * and no guest call is left.
 */
#include "manifest/capsule/capsule.h"
#include "session/hooks/hooks_internal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/condition.h"
#include "base/diag.h"
#include "base/thread.h"
#include "session/state/inventory.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define QUEUE_JOBS 1024

struct job {
    struct arena *arena;
    enum hook_event_kind kind;
    struct value event;
    struct hook_serving serving;
};

struct hook_queue {
    struct hook *hook;
    pthread_t thread;
    bool has_thread;
    struct cancel *cancel;
    pthread_mutex_t lock; /* guards what follows; a leaf */
    pthread_cond_t changed;
    struct job jobs[QUEUE_JOBS];
    size_t first, len;
    bool is_closed, is_abandoned, is_idle;
    enum hook_event_kind running;
};

static void
run_job (struct hook *h, struct job *job)
{
    struct hook_output output;
    const char *failure;
    h->serving = job->serving;
    if (! hook_ask (h, job->kind, &job->event, job->arena, &output, &failure) &&
        ! cancel_is_raised (job->serving.cancel)) {
        hook_log (h, job->kind, failure);
        hook_trace_fault (h, job->kind, "error");
    }
    arena_free (job->arena);
}

static void *
work (void *arg)
{
    struct hook_queue *q = arg;
    pthread_mutex_lock (&q->lock);
    while (! q->is_abandoned) {
        if (q->len) {
            struct job job = q->jobs[q->first];
            q->first = (q->first + 1) % QUEUE_JOBS;
            q->len--;
            q->is_idle = false;
            q->running = job.kind;
            pthread_cond_broadcast (&q->changed);
            pthread_mutex_unlock (&q->lock);
            run_job (q->hook, &job);
            pthread_mutex_lock (&q->lock);
            q->is_idle = true;
            pthread_cond_broadcast (&q->changed);
        } else if (q->is_closed) {
            break;
        } else {
            pthread_cond_wait (&q->changed, &q->lock);
        }
    }
    pthread_mutex_unlock (&q->lock);
    return NULL;
}

struct hook_queue *
hook_queue_new (struct hook *h)
{
    struct hook_queue *q = x_new0 (struct hook_queue);
    condition_init (&q->changed);
    pthread_mutex_init (&q->lock, NULL);
    q->hook = h;
    q->cancel = cancel_new ();
    q->is_idle = true;
    q->has_thread = thread_start (&q->thread, work, q) == 0;
    if (q->has_thread)
        pthread_setname_np (q->thread, "mur-hook");
    else
        diag_plain_warning ("hook %s: no thread could be started for it", h->name);
    return q;
}

void
hook_queue_put (struct hook_queue *q, const struct hook_event *event,
                const struct hook_serving *serving)
{
    bool waits = q->hook->artifact->entry->on_overflow == OVERFLOW_BLOCK;
    pthread_mutex_lock (&q->lock);
    while (q->has_thread && waits && q->len == QUEUE_JOBS)
        pthread_cond_wait (&q->changed, &q->lock);
    bool is_taken = q->has_thread && q->len < QUEUE_JOBS;
    if (is_taken) {
        struct job *job = &q->jobs[(q->first + q->len++) % QUEUE_JOBS];
        job->arena = arena_new ();
        job->kind = event->kind;
        job->event = hook_event_to_value (job->arena, event);
        job->serving = *serving;
        job->serving.task = NULL;
        job->serving.cancel = q->cancel;
        pthread_cond_broadcast (&q->changed);
    }
    pthread_mutex_unlock (&q->lock);
    if (! is_taken)
        hook_trace_fault (q->hook, event->kind, "queue-overflow");
}

void
hook_queue_close (struct hook_queue *q)
{
    pthread_mutex_lock (&q->lock);
    q->is_closed = true;
    pthread_cond_broadcast (&q->changed);
    pthread_mutex_unlock (&q->lock);
}

void
hook_queue_drain (struct hook_queue *q, uint64_t deadline_ms)
{
    struct timespec until = { (time_t)(deadline_ms / 1000), (long)(deadline_ms % 1000) * 1000000 };
    pthread_mutex_lock (&q->lock);
    while (q->has_thread && (q->len || ! q->is_idle) &&
           pthread_cond_timedwait (&q->changed, &q->lock, &until) != ETIMEDOUT)
        ;
    bool is_late = q->has_thread && (q->len || ! q->is_idle);
    q->is_abandoned = true;
    enum hook_event_kind running = q->running;
    pthread_cond_broadcast (&q->changed);
    pthread_mutex_unlock (&q->lock);
    if (is_late) {
        cancel_raise (q->cancel);
        hook_log (q->hook, running, "it was not done when the session ended; abandoned");
        hook_trace_fault (q->hook, running, "timeout");
    }
    if (q->has_thread)
        pthread_join (q->thread, NULL);
    for (; q->len; q->len--, q->first = (q->first + 1) % QUEUE_JOBS)
        arena_free (q->jobs[q->first].arena);
    cancel_unref (q->cancel);
    pthread_cond_destroy (&q->changed);
    pthread_mutex_destroy (&q->lock);
    free (q);
}
