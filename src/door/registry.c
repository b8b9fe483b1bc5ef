/* SPDX-License-Identifier: Apache-2.0
 *
 * The task registry. See registry.h.
 */
#include "door/registry.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/condition.h"
#include "base/json.h"
#include "door/message.h"
#include "door/streams.h"
#include "door/task_json.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

enum lane { LANE_USER, LANE_PEER, LANE_BACKGROUND, LANE_COUNT };

struct waiter {
    registry_settled_fn *fn;
    void *ctx;
    struct waiter *next;
};

struct entry {
    struct task task;
    struct task_view view; /* what the task object is made of */
    bool has_ending;
    uint64_t revision;
    struct entry *newer, *older; /* by revision */
    struct entry *next_queued;
    bool is_queued;
    char *reply; /* the answer to an input-required prompt */
    struct waiter *waiters;
};

struct registry {
    struct registry_spec spec;
    struct streams *streams;
    registry_completion_fn *take_completion;
    void *completion_ctx;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct entry **entries; /* by id: ids grow as they are minted */
    size_t len, cap;
    struct entry *newest, *oldest;
    struct entry *lanes[LANE_COUNT];
    struct entry *active;
    unsigned waiting; /* queued and not cancelled */
    bool has_run, is_closed, is_interrupted, is_poked;
    uint64_t revision;
    uint64_t generation;
    registry_residue_fn *residue; /* NULL: nothing can be left running */
    void *residue_ctx;
};

static const struct {
    const char *word, *wire;
    bool is_terminal;
} states[] = {
    [TASK_SUBMITTED] = { "submitted", "TASK_STATE_SUBMITTED", false },
    [TASK_WORKING] = { "working", "TASK_STATE_WORKING", false },
    [TASK_INPUT_REQUIRED] = { "input-required", "TASK_STATE_INPUT_REQUIRED", false },
    [TASK_COMPLETED] = { "completed", "TASK_STATE_COMPLETED", true },
    [TASK_FAILED] = { "failed", "TASK_STATE_FAILED", true },
    [TASK_CANCELED] = { "canceled", "TASK_STATE_CANCELED", true },
    [TASK_REJECTED] = { "rejected", "TASK_STATE_REJECTED", true },
};

static const char *const origins[] = {
    "user", "peer", "event", "schedule", "completion", "system"
};

static const enum lane lane_of[] = {
    [ORIGIN_USER] = LANE_USER,
    [ORIGIN_PEER] = LANE_PEER,
    [ORIGIN_EVENT] = LANE_BACKGROUND,
    [ORIGIN_SCHEDULE] = LANE_BACKGROUND,
    [ORIGIN_COMPLETION] = LANE_BACKGROUND,
    [ORIGIN_SYSTEM] = LANE_BACKGROUND,
};

const char *
task_state_word (enum task_state state)
{
    return states[state].word;
}

const char *
task_state_wire (enum task_state state)
{
    return states[state].wire;
}

bool
task_state_is_terminal (enum task_state state)
{
    return states[state].is_terminal;
}

const char *
task_origin_name (enum task_origin origin)
{
    return origins[origin];
}

/* --- making and freeing --- */

struct registry *
registry_new (const struct registry_spec *spec)
{
    struct registry *r = x_new0 (struct registry);
    r->spec = *spec;
    r->streams = streams_new (spec->is_threaded);
    pthread_mutex_init (&r->lock, NULL);
    condition_init (&r->changed);
    return r;
}

static void
entry_free (struct entry *e)
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
    strv_free (&e->task.references);
    cancel_unref (e->task.cancel);
    task_view_clear (&e->view);
    free (e->reply);
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
    streams_free (r->streams);
    pthread_cond_destroy (&r->changed);
    pthread_mutex_destroy (&r->lock);
    free (r);
}

void
registry_set_completions (struct registry *r, registry_completion_fn *fn, void *ctx)
{
    r->take_completion = fn;
    r->completion_ctx = ctx;
}

bool
registry_take_completion (const struct registry *r, const char *delegation_id)
{
    return r->take_completion && r->take_completion (r->completion_ctx, delegation_id);
}

struct streams *
registry_streams (struct registry *r)
{
    return r->streams;
}

/* --- entries, all under the lock --- */

static struct entry *
find (struct registry *r, const char *id)
{
    size_t low = 0, high = r->len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp (r->entries[middle]->task.id, id);
        if (order == 0)
            return r->entries[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static struct entry *
entry_of (struct registry *r, const struct task *task)
{
    return find (r, task->id);
}

static bool
is_visible (const struct registry *r, const struct entry *e, const struct caller *caller)
{
    return r->spec.is_public || str_eq (caller->credential, "operator") ||
           (e->task.owner && str_eq (caller->credential, e->task.owner));
}

static struct entry *
find_visible (struct registry *r, const struct caller *caller, const char *id)
{
    struct entry *e = find (r, id);
    return e && is_visible (r, e, caller) ? e : NULL;
}

static void
unlink_revision (struct registry *r, struct entry *e)
{
    if (r->newest != e && ! e->newer)
        return; /* not linked yet */
    *(e->newer ? &e->newer->older : &r->newest) = e->older;
    *(e->older ? &e->older->newer : &r->oldest) = e->newer;
}

/* Each write of a state or an ending takes the next revision and the time. */
static void
touch (struct registry *r, struct entry *e)
{
    unlink_revision (r, e);
    e->revision = ++r->revision;
    e->view.timestamp_ms = clock_unix_ms ();
    e->newer = NULL;
    e->older = r->newest;
    *(e->older ? &e->older->newer : &r->oldest) = e;
    r->newest = e;
}

static void
set_state (struct registry *r, struct entry *e, enum task_state state)
{
    e->view.state = state;
    touch (r, e);
}

static bool
is_settled (const struct entry *e)
{
    return e->view.state == TASK_INPUT_REQUIRED || e->has_ending;
}

static void
answer_waiters (struct entry *e)
{
    while (e->waiters) {
        struct waiter *w = e->waiters;
        e->waiters = w->next;
        w->fn (w->ctx, task_view_json (&e->view, true));
        free (w);
    }
}

/* The response, if there is one, and the one terminal status. */
static void
stream_ending (struct registry *r, struct entry *e)
{
    streams_end (r->streams, &e->task, task_view_response (&e->view), task_view_status (&e->view),
                 e->view.state, task_view_metadata (&e->view));
}

/* Records how it ended; the state is written already. The stream is told now, but of a task
 * cancelled while it is queued only when the loop comes to it. */
static void
record_ending (struct registry *r, struct entry *e, const char *status_text, const char *response,
               const json_t *metadata)
{
    e->has_ending = true;
    free (e->view.status_text);
    e->view.status_text = x_strdup (status_text);
    bool keeps_response = e->view.state == TASK_COMPLETED && response && *response;
    e->view.response = keeps_response ? x_strdup (response) : NULL;
    e->view.metadata = metadata ? json_deep_copy (metadata) : NULL;
    touch (r, e);
    if (! e->is_queued)
        stream_ending (r, e);
    answer_waiters (e);
    pthread_cond_broadcast (&r->changed);
}

static struct entry *
add_entry (struct registry *r, enum task_origin origin, const char *id, const char *context_id)
{
    struct entry *e = x_new0 (struct entry);
    e->task.id = x_strdup (id ? id : id_new ("tsk_").text);
    e->task.context_id = context_id ? x_strdup (context_id) : x_strdup (id_new ("ctx_").text);
    e->task.origin = origin;
    e->task.received_ms = clock_unix_ms ();
    e->task.cancel = cancel_new ();
    e->view.id = e->task.id;
    e->view.context_id = e->task.context_id;
    x_grow (r->entries, r->len, r->cap);
    r->entries[r->len++] = e;
    set_state (r, e, TASK_SUBMITTED);
    return e;
}

static void
enqueue (struct registry *r, struct entry *e)
{
    struct entry **at = &r->lanes[lane_of[e->task.origin]];
    while (*at)
        at = &(*at)->next_queued;
    *at = e;
    e->is_queued = true;
    r->waiting++;
    pthread_cond_broadcast (&r->changed);
}

static char *
copy_or_null (const char *s)
{
    return s ? x_strdup (s) : NULL;
}

/* --- the task loop's side --- */

const struct task *
registry_enqueue (struct registry *r, const struct task_intake *intake)
{
    pthread_mutex_lock (&r->lock);
    struct entry *e = NULL;
    if (! r->is_closed) {
        e = add_entry (r, intake->origin, intake->id, intake->context_id);
        e->task.text = copy_or_null (intake->text);
        e->task.source = copy_or_null (intake->source);
        e->task.is_trusted = intake->is_trusted;
        e->task.forgets_session = intake->forgets_session;
        enqueue (r, e);
    }
    pthread_mutex_unlock (&r->lock);
    return e ? &e->task : NULL;
}

static struct entry *
pop (struct registry *r, bool only_canceled)
{
    for (int lane = 0; lane < LANE_COUNT; lane++)
        for (struct entry **at = &r->lanes[lane]; *at; at = &(*at)->next_queued) {
            struct entry *e = *at;
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
    struct entry *e = pop (r, r->is_interrupted || r->is_closed);
    if (e && e->view.state == TASK_CANCELED) {
        stream_ending (r, e);
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
    set_state (r, e, TASK_WORKING);
    *task = &e->task;
    return REGISTRY_TASK;
}

enum registry_next
registry_next (struct registry *r, uint64_t wait_ms, const struct task **task)
{
    struct timespec until = deadline_in (wait_ms);
    *task = NULL;
    pthread_mutex_lock (&r->lock);
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
registry_end (struct registry *r, const struct task *task, const struct task_ending *ending)
{
    pthread_mutex_lock (&r->lock);
    struct entry *e = entry_of (r, task);
    bool was_canceled = e->view.state == TASK_CANCELED;
    if (! was_canceled)
        set_state (r, e, ending->state);
    enum task_state stands = e->view.state;
    /* What the loop says of another ending than the one that stands is not said. */
    const char *text = stands == ending->state && ending->status_text ? ending->status_text
                                                                      : default_text (stands);
    if (r->active == e)
        r->active = NULL;
    r->generation++;
    record_ending (r, e, text, ending->response, ending->metadata);
    pthread_mutex_unlock (&r->lock);
    return stands;
}

char *
registry_request_input (struct registry *r, const struct task *task, const char *prompt,
                        uint64_t timeout_ms, bool *timed_out)
{
    *timed_out = false;
    uint64_t end_ms = timeout_ms == UINT64_MAX ? UINT64_MAX : clock_monotonic_ms () + timeout_ms;
    pthread_mutex_lock (&r->lock);
    struct entry *e = entry_of (r, task);
    if (r->active != e || e->view.state != TASK_WORKING) {
        pthread_mutex_unlock (&r->lock);
        return NULL;
    }
    free (e->view.prompt);
    e->view.prompt = x_strdup (prompt);
    set_state (r, e, TASK_INPUT_REQUIRED);
    streams_status (r->streams, task, task_view_said (&e->view, prompt), TASK_INPUT_REQUIRED);
    answer_waiters (e);
    while (e->view.state == TASK_INPUT_REQUIRED && ! cancel_is_raised (task->cancel)) {
        uint64_t now = clock_monotonic_ms ();
        if (now >= end_ms) {
            *timed_out = true;
            break;
        }
        /* A cancel raised beside the registry is noticed within a slice. */
        struct timespec slice = deadline_in (end_ms - now < 100 ? end_ms - now : 100);
        pthread_cond_timedwait (&r->changed, &r->lock, &slice);
    }
    if (e->view.state == TASK_INPUT_REQUIRED)
        set_state (r, e, TASK_WORKING);
    free (e->view.prompt);
    e->view.prompt = NULL;
    char *reply = steal_ptr (&e->reply);
    if (reply && *timed_out)
        *timed_out = false;
    pthread_mutex_unlock (&r->lock);
    return reply;
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
        struct entry **at = &r->lanes[lane];
        while (*at) {
            struct entry *e = *at;
            if (e->view.state == TASK_CANCELED) {
                at = &e->next_queued;
                continue;
            }
            *at = e->next_queued;
            e->next_queued = NULL;
            e->is_queued = false;
            r->waiting--;
            (*tasks)[count++] = &e->task;
            set_state (r, e, TASK_REJECTED);
            record_ending (r, e, text, NULL, NULL);
        }
    }
    pthread_cond_broadcast (&r->changed);
    pthread_mutex_unlock (&r->lock);
    return count;
}

/* Under the lock. A queued task has stopped by being cancelled; a running one ends when the loop
 * says so. The caller raises the task's cancel once the lock is released: its listeners take locks
 * whose holders call registry_poke. */
static void
cancel_entry (struct registry *r, struct entry *e)
{
    set_state (r, e, TASK_CANCELED);
    if (e->is_queued) {
        r->waiting--;
        record_ending (r, e, "task canceled before it started", NULL, NULL);
    }
    pthread_cond_broadcast (&r->changed);
}

void
registry_cancel_all (struct registry *r, struct strv *ids)
{
    pthread_mutex_lock (&r->lock);
    struct cancel **raised = x_new_array (struct cancel *, r->len + 1);
    for (size_t i = 0; i < r->len; i++) {
        struct entry *e = r->entries[i];
        if (task_state_is_terminal (e->view.state))
            continue;
        raised[ids->len] = e->task.cancel; /* lives as long as the registry */
        strv_push (ids, e->task.id);
        cancel_entry (r, e);
    }
    pthread_mutex_unlock (&r->lock);
    for (size_t i = 0; i < ids->len; i++)
        cancel_raise (raised[i]);
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

/* --- the door's side --- */

void
route_result_clear (struct route_result *r)
{
    json_decref (r->task);
    free (r->context);
    *r = (struct route_result){ 0 };
}

static bool
accepts (const struct registry *r)
{
    if (r->is_closed || r->spec.acceptance == ACCEPT_NONE)
        return false;
    if (r->spec.acceptance == ACCEPT_SINGLE)
        return ! r->has_run && ! r->active && r->waiting == 0;
    return r->waiting < r->spec.queue_depth;
}

static char *
text_with_references (struct registry *r, const struct caller *caller,
                      const struct message_intake *message)
{
    struct buf out = { 0 };
    buf_puts (&out, message->text);
    const struct strv *ids = message->references;
    for (size_t i = 0; ids && i < ids->len; i++) {
        const struct entry *e = find_visible (r, caller, ids->items[i]);
        if (i == 0)
            buf_puts (&out, "\n\nReferenced tasks:");
        message_append_reference (&out, ids->items[i], e ? &e->view : NULL);
    }
    return buf_steal (&out);
}

static void
refuse_busy (struct registry *r, const struct message_intake *message, struct route_result *out)
{
    struct id id = id_new ("tsk_"), context = id_new ("ctx_");
    struct task_view view = {
        .id = id.text,
        .context_id = message->context_id ? (char *)message->context_id : context.text,
        .state = TASK_REJECTED,
        .timestamp_ms = clock_unix_ms (),
        .status_text = (char *)(r->is_closed ? "task rejected: the session is closing"
                                             : "task rejected: capsule is busy"),
    };
    out->outcome = ROUTE_BUSY;
    out->state = TASK_REJECTED;
    out->task = task_view_json (&view, true);
    memcpy (out->id, id.text, sizeof out->id);
}

static void
route_new (struct registry *r, const struct caller *caller, const struct message_intake *message,
           struct route_result *out)
{
    if (! accepts (r)) {
        refuse_busy (r, message, out);
        return;
    }
    char *text = text_with_references (r, caller, message);
    struct entry *e = add_entry (r, message->origin, NULL, message->context_id);
    e->task.text = text;
    e->task.message_id = copy_or_null (message->message_id);
    e->task.owner = copy_or_null (caller->credential);
    e->task.caller_member = copy_or_null (caller->member);
    e->task.traceparent = copy_or_null (message->traceparent);
    e->task.source = x_strdup ("a2a");
    e->task.is_trusted = message->is_trusted;
    e->task.forgets_session = message->forgets_session;
    e->task.parts_bytes = strlen (message->text);
    e->task.has_text = message->has_text;
    e->task.has_data = message->has_data;
    for (size_t i = 0; message->references && i < message->references->len; i++)
        strv_push (&e->task.references, message->references->items[i]);
    enqueue (r, e);
    out->outcome = ROUTE_NEW;
    out->state = TASK_SUBMITTED;
    out->task = task_view_json (&e->view, true);
    memcpy (out->id, e->task.id, sizeof out->id);
}

static void
route_continuation (struct registry *r, const struct caller *caller, struct entry *e,
                    const struct message_intake *message, struct route_result *out)
{
    if (message->context_id && strcmp (message->context_id, e->task.context_id) != 0) {
        out->outcome = ROUTE_CONTEXT_DIFFERS;
        out->context = x_strdup (e->task.context_id);
        return;
    }
    e->reply = text_with_references (r, caller, message);
    set_state (r, e, TASK_WORKING);
    streams_status (r->streams, &e->task, task_view_said (&e->view, "resumed"), TASK_WORKING);
    pthread_cond_broadcast (&r->changed);
    out->outcome = ROUTE_CONTINUED;
    out->state = TASK_WORKING;
    out->task = task_view_json (&e->view, true);
}

void
registry_route (struct registry *r, const struct caller *caller,
                const struct message_intake *message, struct route_result *out)
{
    *out = (struct route_result){ 0 };
    pthread_mutex_lock (&r->lock);
    if (! message->task_id) {
        route_new (r, caller, message, out);
    } else {
        struct entry *e = find_visible (r, caller, message->task_id);
        out->outcome = e ? ROUTE_NOT_WAITING : ROUTE_NOT_FOUND;
        if (e) {
            out->state = e->view.state;
            memcpy (out->id, e->task.id, sizeof out->id);
        }
        if (e && e->view.state == TASK_INPUT_REQUIRED && ! e->reply)
            route_continuation (r, caller, e, message, out);
    }
    pthread_mutex_unlock (&r->lock);
}

json_t *
registry_task_json (struct registry *r, const struct caller *caller, const char *task_id,
                    bool *settled, enum task_state *state)
{
    pthread_mutex_lock (&r->lock);
    const struct entry *e = find_visible (r, caller, task_id);
    json_t *json = e ? task_view_json (&e->view, true) : NULL;
    if (e && settled)
        *settled = is_settled (e);
    if (e && state)
        *state = e->view.state;
    pthread_mutex_unlock (&r->lock);
    return json;
}

bool
registry_when_settled (struct registry *r, const struct caller *caller, const char *task_id,
                       registry_settled_fn *fn, void *ctx)
{
    pthread_mutex_lock (&r->lock);
    struct entry *e = find_visible (r, caller, task_id);
    if (e && is_settled (e))
        fn (ctx, task_view_json (&e->view, true));
    else if (e) {
        struct waiter *w = x_new0 (struct waiter);
        *w = (struct waiter){ fn, ctx, e->waiters };
        e->waiters = w;
    }
    pthread_mutex_unlock (&r->lock);
    return e != NULL;
}

void
registry_settle_waiters (struct registry *r)
{
    pthread_mutex_lock (&r->lock);
    for (size_t i = 0; i < r->len; i++)
        answer_waiters (r->entries[i]);
    pthread_mutex_unlock (&r->lock);
}

static bool
is_listed (const struct registry *r, const struct entry *e, const struct caller *caller,
           const struct list_query *q)
{
    return is_visible (r, e, caller) && ! q->matches_nothing &&
           (! q->context_id || strcmp (q->context_id, e->task.context_id) == 0) &&
           (! q->has_state || q->state == e->view.state) &&
           (! q->has_after || e->view.timestamp_ms >= q->after_ms);
}

/* Newest revision first; the cursor is a position, so what changed meanwhile has moved ahead of it.
 */
json_t *
registry_list_json (struct registry *r, const struct caller *caller, const struct list_query *query)
{
    json_t *tasks = json_array ();
    uint64_t total = 0;
    char *token = NULL;
    const struct entry *last = NULL;
    pthread_mutex_lock (&r->lock);
    for (const struct entry *e = r->newest; e; e = e->older) {
        if (! is_listed (r, e, caller, query))
            continue;
        total++;
        if (query->has_cursor && e->revision >= query->cursor_revision)
            continue;
        if (json_array_size (tasks) < query->page_size) {
            json_array_append_new (tasks,
                                   task_view_listed_json (&e->view, query->includes_artifacts));
            last = e;
        } else if (! token)
            token = task_page_token (last->revision, last->task.id);
    }
    pthread_mutex_unlock (&r->lock);
    json_t *result = json_object ();
    json_object_set_new (result, "tasks", tasks);
    json_set_string (result, "nextPageToken", token ? token : "");
    json_set_u64 (result, "pageSize", query->page_size);
    json_set_u64 (result, "totalSize", total);
    free (token);
    return result;
}

enum cancel_outcome
registry_cancel (struct registry *r, const struct caller *caller, const char *task_id,
                 json_t **task, enum task_state *state)
{
    *task = NULL;
    pthread_mutex_lock (&r->lock);
    struct entry *e = find_visible (r, caller, task_id);
    enum cancel_outcome outcome = ! e                                      ? CANCEL_NOT_FOUND
                                  : task_state_is_terminal (e->view.state) ? CANCEL_ENDED
                                                                           : CANCEL_DONE;
    if (outcome == CANCEL_ENDED)
        *state = e->view.state;
    if (outcome == CANCEL_DONE) {
        cancel_entry (r, e);
        *task = task_view_json (&e->view, true);
    }
    pthread_mutex_unlock (&r->lock);
    if (outcome == CANCEL_DONE)
        cancel_raise (e->task.cancel);
    return outcome;
}

void
registry_set_residue (struct registry *r, registry_residue_fn *fn, void *ctx)
{
    r->residue = fn;
    r->residue_ctx = ctx;
}

json_t *
registry_residue (const struct registry *r, const char *task_id)
{
    json_t *items = json_array ();
    if (r->residue)
        r->residue (r->residue_ctx, task_id, items);
    return items;
}
