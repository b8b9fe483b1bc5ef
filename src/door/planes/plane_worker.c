/* SPDX-License-Identifier: Apache-2.0 */
#include "door/planes/plane_worker.h"

#include "base/alloc.h"
#include "base/thread.h"
#include "net/server/http_exchange.h"

#include <pthread.h>

#define THREADS_MAX 4
#define LONG_MAX    2 /* of them at long jobs, so that short ones never wait for those */

struct plane_job {
    struct http_exchange *x;
    plane_job_fn *run;
    void *ctx;
    bool is_long;
    struct plane_job *next;
};

struct plane_worker {
    pthread_mutex_t lock; /* a leaf: guards what follows */
    pthread_cond_t changed;
    struct plane_job *first, **last;
    unsigned queued;       /* jobs nobody has taken yet */
    unsigned waiting;      /* threads without work */
    unsigned long_running; /* threads at a long job */
    bool is_closing;
    struct cancel *cancel;
    pthread_t threads[THREADS_MAX];
    unsigned thread_count;
};

struct plane_worker *
plane_worker_new (void)
{
    struct plane_worker *w = x_new0 (struct plane_worker);
    pthread_mutex_init (&w->lock, NULL);
    pthread_cond_init (&w->changed, NULL);
    w->last = &w->first;
    w->cancel = cancel_new ();
    return w;
}

/* Where the next job hangs that may begin now; NULL when there is none. */
static struct plane_job **
next_ready (struct plane_worker *w)
{
    struct plane_job **at = &w->first;
    while (*at && (*at)->is_long && w->long_running == LONG_MAX)
        at = &(*at)->next;
    return *at ? at : NULL;
}

static struct plane_job *
take (struct plane_worker *w)
{
    struct plane_job **at = NULL, *job = NULL;
    pthread_mutex_lock (&w->lock);
    w->waiting++;
    while (! w->is_closing && ! (at = next_ready (w)))
        pthread_cond_wait (&w->changed, &w->lock);
    w->waiting--;
    if (! w->is_closing) {
        job = *at;
        *at = job->next;
        if (! job->next)
            w->last = at;
        w->queued--;
        w->long_running += job->is_long;
    }
    pthread_mutex_unlock (&w->lock);
    return job;
}

static void
finish (struct plane_worker *w, struct plane_job *job)
{
    pthread_mutex_lock (&w->lock);
    w->long_running -= job->is_long;
    if (job->is_long)
        pthread_cond_signal (&w->changed); /* another long one may wait */
    pthread_mutex_unlock (&w->lock);
    free (job);
}

static void *
work (void *arg)
{
    struct plane_worker *w = arg;
    for (struct plane_job *job; (job = take (w));) {
        job->run (job->ctx, job->x, w->cancel);
        finish (w, job);
    }
    return NULL;
}

/* Under the lock. Without a thread the job would wait for ever: false when there is none. */
static bool
have_thread (struct plane_worker *w)
{
    if (w->is_closing)
        return false;
    if (w->waiting > w->queued || w->thread_count == THREADS_MAX)
        return true;
    if (thread_start (&w->threads[w->thread_count], work, w) == 0) {
        pthread_setname_np (w->threads[w->thread_count], "mur-plane");
        w->thread_count++;
    }
    return w->thread_count > 0;
}

void
plane_worker_hand (struct plane_worker *w, struct http_exchange *x, plane_job_fn *run, void *ctx,
                   bool is_long)
{
    struct plane_job *job = x_new0 (struct plane_job);
    *job = (struct plane_job){ x, run, ctx, is_long, NULL };
    http_hold_briefly (x);
    pthread_mutex_lock (&w->lock);
    bool is_taken = have_thread (w);
    if (is_taken) {
        *w->last = job;
        w->last = &job->next;
        w->queued++;
        pthread_cond_signal (&w->changed);
    }
    pthread_mutex_unlock (&w->lock);
    if (is_taken)
        return;
    free (job);
    http_refuse (x, 503, NULL, 0, NULL, 0);
}

void
plane_worker_stop (struct plane_worker *w)
{
    pthread_mutex_lock (&w->lock);
    w->is_closing = true;
    pthread_cond_broadcast (&w->changed);
    pthread_mutex_unlock (&w->lock);
    cancel_raise (w->cancel);
    for (unsigned i = 0; i < w->thread_count; i++)
        pthread_join (w->threads[i], NULL);
    w->thread_count = 0;
}

void
plane_worker_free (struct plane_worker *w)
{
    if (! w)
        return;
    plane_worker_stop (w);
    for (struct plane_job *job = w->first, *next; job; job = next) {
        next = job->next;
        free (job);
    }
    cancel_unref (w->cancel);
    pthread_cond_destroy (&w->changed);
    pthread_mutex_destroy (&w->lock);
    free (w);
}
