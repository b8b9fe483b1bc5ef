/* SPDX-License-Identifier: Apache-2.0 */
#include "door/tasks/tasks.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/condition.h"
#include "door/tasks/tasks_internal.h"

#include <string.h>

static const char *const origins[] = {
    "user", "peer", "event", "schedule", "completion", "system"
};

const char *
task_origin_name (enum task_origin origin)
{
    return origins[origin];
}

struct registry *
registry_new (const struct registry_spec *spec)
{
    struct registry *r = x_new0 (struct registry);
    r->spec = *spec;
    r->streams = streams_new (spec->is_threaded);
    r->ended = spec->has_records ? ended_tasks_new (spec->records_fd) : NULL;
    pthread_mutex_init (&r->lock, NULL);
    condition_init (&r->changed);
    return r;
}

static void
entry_free (struct task_entry *e)
{
    while (e->waiters) {
        struct waiter *w = e->waiters;
        e->waiters = w->next;
        free (w);
    }
    free (e->task.id);
    free (e->task.context_id);
    free (e->task.text);
    free (e->task.message_id);
    free (e->task.owner);
    free (e->task.caller_member);
    free (e->task.traceparent);
    free (e->task.source);
    free (e->task.part_kinds);
    strv_free (&e->task.references);
    cancel_unref (e->task.cancel);
    task_view_clear (&e->view);
    free (e->reply);
    free (e->reply_by);
    strv_free (&e->answers);
    free (e->answered_id);
    free (e->answered_with);
    free (e);
}

void
registry_free (struct registry *r)
{
    if (! r)
        return;
    for (size_t i = 0; i < r->len; i++)
        entry_free (r->entries[i]);
    free (r->entries);
    ended_tasks_free (r->ended);
    streams_free (r->streams);
    pthread_cond_destroy (&r->changed);
    pthread_mutex_destroy (&r->lock);
    free (r);
}

struct streams *
registry_streams (struct registry *r)
{
    return r->streams;
}

/* --- entries --- */

static const enum lane lane_of[] = {
    [ORIGIN_USER] = LANE_USER,
    [ORIGIN_PEER] = LANE_PEER,
    [ORIGIN_EVENT] = LANE_BACKGROUND,
    [ORIGIN_SCHEDULE] = LANE_BACKGROUND,
    [ORIGIN_COMPLETION] = LANE_BACKGROUND,
    [ORIGIN_SYSTEM] = LANE_BACKGROUND,
};

/* Where an id is among the entries, or r->len. */
static size_t
entry_place (const struct registry *r, const char *id)
{
    size_t low = 0, high = r->len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp (r->entries[middle]->task.id, id);
        if (order == 0)
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return r->len;
}

struct task_entry *
task_entry_find (struct registry *r, const char *id)
{
    size_t at = entry_place (r, id);
    return at < r->len ? r->entries[at] : NULL;
}

static void
unlink_revision (struct registry *r, struct task_entry *e)
{
    if (r->newest != e && ! e->newer)
        return; /* not linked yet */
    *(e->newer ? &e->newer->older : &r->newest) = e->older;
    *(e->older ? &e->older->newer : &r->oldest) = e->newer;
}

/* Each write of a state or an ending takes the next revision and the time. */
static void
touch (struct registry *r, struct task_entry *e)
{
    unlink_revision (r, e);
    e->revision = ++r->revision;
    e->view.timestamp_ms = clock_unix_ms ();
    e->newer = NULL;
    e->older = r->newest;
    *(e->older ? &e->older->newer : &r->oldest) = e;
    r->newest = e;
}

void
task_entry_set_state (struct registry *r, struct task_entry *e, enum task_state state)
{
    e->view.state = state;
    touch (r, e);
}

void
task_entry_answer_waiters (struct task_entry *e)
{
    while (e->waiters) {
        struct waiter *w = e->waiters;
        e->waiters = w->next;
        w->fn (w->ctx, task_view_json (&e->view, true));
        free (w);
    }
}

void
task_entry_stream_ending (struct registry *r, struct task_entry *e)
{
    streams_end (r->streams, &e->task, task_view_response (&e->view), task_view_status (&e->view),
                 e->view.state, task_view_metadata (&e->view));
}

void
task_entry_record_ending (struct registry *r, struct task_entry *e, const char *status_text,
                          const char *response, const json_t *metadata)
{
    r->ended_held += ! e->has_ending;
    e->has_ending = true;
    free (e->view.status_text);
    e->view.status_text = x_strdup (status_text);
    bool keeps_response = e->view.state == TASK_COMPLETED && response && *response;
    e->view.response = keeps_response ? x_strdup (response) : NULL;
    e->view.metadata = metadata ? json_deep_copy (metadata) : NULL;
    touch (r, e);
    if (! e->is_queued)
        task_entry_stream_ending (r, e);
    task_entry_answer_waiters (e);
    pthread_cond_broadcast (&r->changed);
}

/* --- what ended long ago --- */

/* The one whose ending is the oldest; NULL: none, or the loop is not done with it. What is on disk
 * is in the order of revisions, so no later one may go first. */
static struct task_entry *
oldest_ended (const struct registry *r)
{
    struct task_entry *e = r->oldest;
    while (e && ! e->has_ending)
        e = e->newer;
    return e && ! e->is_queued && e != r->handed && e != r->active ? e : NULL;
}

static void
remove_entry (struct registry *r, struct task_entry *e)
{
    size_t at = entry_place (r, e->task.id);
    unlink_revision (r, e);
    memmove (&r->entries[at], &r->entries[at + 1], (--r->len - at) * sizeof (*r->entries));
    entry_free (e);
}

void
task_entries_retire (struct registry *r)
{
    uint64_t now = clock_unix_ms ();
    /* Once it is closed, the loop lists what it rejected. */
    while (r->ended && ! r->is_closed && r->ended_held) {
        struct task_entry *e = oldest_ended (r);
        bool is_old = e && now > e->view.timestamp_ms && now - e->view.timestamp_ms > ENDED_HELD_MS;
        if (! e || (r->ended_held <= ENDED_HELD && ! is_old) ||
            ! ended_tasks_put (r->ended, &e->view, e->task.owner, e->revision))
            return;
        r->ended_held--;
        remove_entry (r, e);
    }
}

struct task_entry *
task_entry_add (struct registry *r, enum task_origin origin, const char *id, const char *context_id)
{
    struct task_entry *e = x_new0 (struct task_entry);
    e->task.id = x_strdup (id ? id : id_new ("tsk_").text);
    e->task.context_id = context_id ? x_strdup (context_id) : x_strdup (id_new ("ctx_").text);
    e->task.origin = origin;
    e->task.received_ms = clock_unix_ms ();
    e->task.cancel = cancel_new ();
    e->view.id = e->task.id;
    e->view.context_id = e->task.context_id;
    x_grow (r->entries, r->len, r->cap);
    r->entries[r->len++] = e;
    task_entry_set_state (r, e, TASK_SUBMITTED);
    return e;
}

void
task_entry_drop_last (struct registry *r, struct task_entry *e)
{
    unlink_revision (r, e);
    r->len--;
    entry_free (e);
}

void
task_entry_queue (struct registry *r, struct task_entry *e)
{
    struct task_entry **at = &r->lanes[lane_of[e->task.origin]];
    while (*at)
        at = &(*at)->next_queued;
    *at = e;
    e->is_queued = true;
    r->waiting++;
    pthread_cond_broadcast (&r->changed);
}

bool
task_entry_is_over (const struct task_entry *e, enum task_state *state)
{
    *state = e->is_settled ? e->settled_as : e->view.state;
    return task_state_is_terminal (*state);
}

void
task_entry_cancel (struct registry *r, struct task_entry *e)
{
    task_entry_set_state (r, e, TASK_CANCELED);
    if (e->is_queued) {
        r->waiting--;
        task_entry_record_ending (r, e, "task canceled before it started", NULL, NULL);
    }
    pthread_cond_broadcast (&r->changed);
}
