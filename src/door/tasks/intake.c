/* SPDX-License-Identifier: Apache-2.0 */
#include "door/tasks/intake.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "door/tasks/tasks_internal.h"

#include <errno.h>
#include <time.h>

static char *
copy_or_null (const char *s)
{
    return s ? x_strdup (s) : NULL;
}

const struct task *
registry_enqueue (struct registry *r, const struct task_intake *intake)
{
    pthread_mutex_lock (&r->lock);
    struct task_entry *e = NULL;
    if (! r->is_closed) {
        e = task_entry_add (r, intake->origin, intake->id, intake->context_id);
        e->task.text = copy_or_null (intake->text);
        e->task.source = copy_or_null (intake->source);
        e->task.is_trusted = intake->is_trusted;
        e->task.parts_bytes = intake->parts_bytes;
        e->task.forgets_session = intake->forgets_session;
        task_entry_queue (r, e);
    }
    pthread_mutex_unlock (&r->lock);
    return e ? &e->task : NULL;
}

static struct task_entry *
pop (struct registry *r, bool only_canceled)
{
    for (int lane = 0; lane < LANE_COUNT; lane++)
        for (struct task_entry **at = &r->lanes[lane]; *at; at = &(*at)->next_queued) {
            struct task_entry *e = *at;
            if (only_canceled && e->view.state != TASK_CANCELED)
                continue;
            *at = e->next_queued;
            e->next_queued = NULL;
            e->is_queued = false;
            return e;
        }
    return NULL;
}

static struct timespec
deadline_in (uint64_t ms)
{
    struct timespec at;
    clock_gettime (CLOCK_MONOTONIC, &at);
    if (ms > (uint64_t)INT32_MAX)
        ms = INT32_MAX;
    at.tv_sec += (time_t)(ms / 1000);
    at.tv_nsec += (long)(ms % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

static enum registry_next
take_next (struct registry *r, const struct task **task)
{
    struct task_entry *e = pop (r, r->is_interrupted || r->is_closed);
    r->handed = e;
    if (e && e->view.state == TASK_CANCELED) {
        task_entry_stream_ending (r, e);
        *task = &e->task;
        return REGISTRY_CANCELED_QUEUED;
    }
    if (r->is_interrupted)
        return REGISTRY_INTERRUPTED;
    if (! e)
        return REGISTRY_NOTHING;
    r->waiting--;
    r->active = e;
    r->has_run = true;
    task_entry_set_state (r, e, TASK_WORKING);
    *task = &e->task;
    return REGISTRY_TASK;
}

enum registry_next
registry_next (struct registry *r, uint64_t wait_ms, const struct task **task)
{
    struct timespec until = deadline_in (wait_ms);
    *task = NULL;
    pthread_mutex_lock (&r->lock);
    r->handed = NULL;
    task_entries_retire (r);
    enum registry_next next;
    int status = 0;
    while ((next = take_next (r, task)) == REGISTRY_NOTHING && status != ETIMEDOUT &&
           ! r->is_closed && ! r->is_poked)
        status = wait_ms == UINT64_MAX ? pthread_cond_wait (&r->changed, &r->lock)
                                       : pthread_cond_timedwait (&r->changed, &r->lock, &until);
    if (next == REGISTRY_NOTHING && r->is_poked)
        next = REGISTRY_POKED;
    r->is_poked = false;
    pthread_mutex_unlock (&r->lock);
    return next;
}

void
registry_interrupt (struct registry *r)
{
    pthread_mutex_lock (&r->lock);
    r->is_interrupted = true;
    pthread_cond_broadcast (&r->changed);
    pthread_mutex_unlock (&r->lock);
}

void
registry_poke (struct registry *r)
{
    pthread_mutex_lock (&r->lock);
    r->is_poked = true;
    pthread_cond_broadcast (&r->changed);
    pthread_mutex_unlock (&r->lock);
}

static const char *
default_text (enum task_state state)
{
    return state == TASK_COMPLETED  ? "task completed"
           : state == TASK_CANCELED ? "task canceled"
                                    : "task failed";
}

enum task_state
registry_settle (struct registry *r, const struct task *task, enum task_state state)
{
    pthread_mutex_lock (&r->lock);
    struct task_entry *e = task_entry_find (r, task->id);
    e->is_settled = true;
    e->settled_as = e->view.state == TASK_CANCELED ? TASK_CANCELED : state;
    enum task_state stands = e->settled_as;
    pthread_mutex_unlock (&r->lock);
    return stands;
}

enum task_state
registry_end (struct registry *r, const struct task *task, const struct task_ending *ending)
{
    pthread_mutex_lock (&r->lock);
    struct task_entry *e = task_entry_find (r, task->id);
    bool was_canceled = e->view.state == TASK_CANCELED;
    if (! was_canceled)
        task_entry_set_state (r, e, ending->state);
    enum task_state stands = e->view.state;
    /* What the loop says of another ending than the one that stands is not said. */
    const char *text = stands == ending->state && ending->status_text ? ending->status_text
                                                                      : default_text (stands);
    if (r->active == e)
        r->active = NULL;
    r->generation++;
    task_entry_record_ending (r, e, text, ending->response, ending->metadata);
    pthread_mutex_unlock (&r->lock);
    return stands;
}

/* Waits, with the lock, until somebody replied, cancelled, or the time is over (false). */
static bool
wait_for_reply (struct registry *r, const struct task_entry *e, uint64_t end_ms)
{
    while (e->view.state == TASK_INPUT_REQUIRED && ! cancel_is_raised (e->task.cancel)) {
        uint64_t now = clock_monotonic_ms ();
        if (now >= end_ms)
            return false;
        /* A cancel raised beside the registry is noticed within a slice. */
        struct timespec slice = deadline_in (end_ms - now < 100 ? end_ms - now : 100);
        pthread_cond_timedwait (&r->changed, &r->lock, &slice);
    }
    return true;
}

static bool
can_ask (const struct registry *r, const struct task_entry *e)
{
    return e && r->active == e &&
           (e->view.state == TASK_WORKING || e->view.state == TASK_INPUT_REQUIRED);
}

/* One question of a task is open at a time. False: nobody can be asked any more. */
static bool
wait_for_turn (struct registry *r, const struct task_entry *e)
{
    while (can_ask (r, e) && e->view.state != TASK_WORKING && ! cancel_is_raised (e->task.cancel)) {
        struct timespec slice = deadline_in (100);
        pthread_cond_timedwait (&r->changed, &r->lock, &slice);
    }
    return can_ask (r, e) && e->view.state == TASK_WORKING;
}

bool
registry_can_ask (struct registry *r, const struct task *task)
{
    pthread_mutex_lock (&r->lock);
    bool can = can_ask (r, task_entry_find (r, task->id));
    pthread_mutex_unlock (&r->lock);
    return can;
}

bool
registry_ask (struct registry *r, const struct task *task, const struct question *question,
              uint64_t timeout_ms, struct question_reply *reply)
{
    *reply = (struct question_reply){ 0 };
    pthread_mutex_lock (&r->lock);
    struct task_entry *e = task_entry_find (r, task->id);
    if (! wait_for_turn (r, e)) {
        pthread_mutex_unlock (&r->lock);
        return false;
    }
    uint64_t end_ms = timeout_ms == UINT64_MAX ? UINT64_MAX : clock_monotonic_ms () + timeout_ms;
    free (e->view.prompt);
    e->view.prompt = x_strdup (question->text);
    e->view.question = question->data ? json_deep_copy (question->data) : NULL;
    task_entry_set_state (r, e, TASK_INPUT_REQUIRED);
    streams_status (r->streams, task, task_view_said (&e->view, question->text),
                    TASK_INPUT_REQUIRED);
    task_entry_answer_waiters (e);
    reply->has_timed_out = ! wait_for_reply (r, e, end_ms);
    if (e->view.state == TASK_INPUT_REQUIRED)
        task_entry_set_state (r, e, TASK_WORKING);
    free (e->view.prompt);
    json_decref (e->view.question);
    e->view.prompt = NULL;
    e->view.question = NULL;
    reply->text = steal_ptr (&e->reply);
    reply->by = steal_ptr (&e->reply_by);
    reply->has_timed_out &= ! reply->text;
    bool is_canceled = e->view.state == TASK_CANCELED;
    pthread_mutex_unlock (&r->lock);
    /* Whoever cancelled raises it a little later; the caller must not go on until then. */
    if (is_canceled)
        cancel_raise (task->cancel);
    return reply->text != NULL;
}

size_t
registry_close (struct registry *r, bool was_stopped, const struct task ***tasks)
{
    const char *text = was_stopped
                           ? "task rejected: the session was stopped before this task started"
                           : "task rejected: the session ended before this task started";
    pthread_mutex_lock (&r->lock);
    r->is_closed = true;
    *tasks = x_new_array (const struct task *, r->waiting + 1);
    size_t count = 0;
    for (int lane = 0; lane < LANE_COUNT; lane++) {
        struct task_entry **at = &r->lanes[lane];
        while (*at) {
            struct task_entry *e = *at;
            if (e->view.state == TASK_CANCELED) {
                at = &e->next_queued;
                continue;
            }
            *at = e->next_queued;
            e->next_queued = NULL;
            e->is_queued = false;
            r->waiting--;
            (*tasks)[count++] = &e->task;
            task_entry_set_state (r, e, TASK_REJECTED);
            task_entry_record_ending (r, e, text, NULL, NULL);
        }
    }
    pthread_cond_broadcast (&r->changed);
    pthread_mutex_unlock (&r->lock);
    return count;
}

void
registry_cancel_all (struct registry *r, struct strv *ids)
{
    pthread_mutex_lock (&r->lock);
    struct cancel **raised = x_new_array (struct cancel *, r->len + 1);
    for (size_t i = 0; i < r->len; i++) {
        struct task_entry *e = r->entries[i];
        enum task_state state;
        if (task_entry_is_over (e, &state))
            continue;
        raised[ids->len] = cancel_ref (e->task.cancel);
        strv_push (ids, e->task.id);
        task_entry_cancel (r, e);
    }
    pthread_mutex_unlock (&r->lock);
    for (size_t i = 0; i < ids->len; i++) {
        cancel_raise (raised[i]);
        cancel_unref (raised[i]);
    }
    free (raised);
    strv_sort (ids);
}

bool
registry_is_closed (struct registry *r)
{
    pthread_mutex_lock (&r->lock);
    bool closed = r->is_closed;
    pthread_mutex_unlock (&r->lock);
    return closed;
}

uint64_t
registry_generation (struct registry *r)
{
    pthread_mutex_lock (&r->lock);
    uint64_t generation = r->generation;
    pthread_mutex_unlock (&r->lock);
    return generation;
}

void
registry_set_completions (struct registry *r, registry_completion_fn *fn, void *ctx)
{
    r->take_completion = fn;
    r->completion_ctx = ctx;
}

void
registry_set_residue (struct registry *r, registry_residue_fn *fn, void *ctx)
{
    r->residue = fn;
    r->residue_ctx = ctx;
}
