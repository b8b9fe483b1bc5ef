/* SPDX-License-Identifier: Apache-2.0 */
#include "door/tasks/registry.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "door/tasks/message.h"
#include "door/tasks/question.h"
#include "door/tasks/tasks_internal.h"

#include <string.h>

bool
registry_take_completion (const struct registry *r, const char *delegation_id)
{
    return r->take_completion && r->take_completion (r->completion_ctx, delegation_id);
}

static bool
may_see (const struct registry *r, const struct caller *caller, const char *owner)
{
    return r->spec.is_public || str_eq (caller->credential, "operator") ||
           (owner && str_eq (caller->credential, owner));
}

static struct task_entry *
find_visible (struct registry *r, const struct caller *caller, const char *id)
{
    struct task_entry *e = task_entry_find (r, id);
    return e && may_see (r, caller, e->task.owner) ? e : NULL;
}

/* A task wherever it is. */
struct found_task {
    struct task_entry *entry; /* NULL: not held any more, or not found */
    struct ended_task ended;
};

static void
found_task_clear (struct found_task *f)
{
    ended_task_clear (&f->ended);
}
#define _cleanup_found_ _cleanup_ (found_task_clear)

static struct found_task
find_anywhere (struct registry *r, const struct caller *caller, const char *id)
{
    struct found_task f = { .entry = find_visible (r, caller, id) };
    if (! f.entry && r->ended && ended_tasks_find (r->ended, id, &f.ended) &&
        ! may_see (r, caller, f.ended.owner))
        ended_task_clear (&f.ended);
    return f;
}

/* The view points into the found task itself, so it is asked for where that stands. */
static const struct task_view *
view_of (const struct found_task *f)
{
    return f->entry ? &f->entry->view : f->ended.view.id ? &f->ended.view : NULL;
}

static bool
is_settled (const struct task_entry *e)
{
    return e->view.state == TASK_INPUT_REQUIRED || e->has_ending;
}

void
route_result_clear (struct route_result *r)
{
    json_decref (r->task);
    free (r->context);
    free (r->why);
    *r = (struct route_result){ 0 };
}

static char *
copy_or_null (const char *s)
{
    return s ? x_strdup (s) : NULL;
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
        _cleanup_found_ struct found_task f = find_anywhere (r, caller, ids->items[i]);
        if (i == 0)
            buf_puts (&out, "\n\nReferenced tasks:");
        message_append_reference (&out, ids->items[i], view_of (&f));
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
    struct task_entry *e = task_entry_add (r, message->origin, NULL, message->context_id);
    e->task.text = text;
    e->task.message_id = copy_or_null (message->message_id);
    e->task.owner = copy_or_null (caller->credential);
    e->task.caller_member = copy_or_null (caller->member);
    e->task.traceparent = copy_or_null (message->traceparent);
    e->task.source = x_strdup ("a2a");
    e->task.is_trusted = message->is_trusted;
    e->task.forgets_session = message->forgets_session;
    e->task.has_made_context = ! message->context_id;
    e->task.parts_bytes = strlen (message->text);
    e->task.part_kinds = copy_or_null (message->part_kinds);
    for (size_t i = 0; message->references && i < message->references->len; i++)
        strv_push (&e->task.references, message->references->items[i]);
    if (r->spec.record && ! r->spec.record (r->spec.record_ctx, &e->task)) {
        task_entry_drop_last (r, e);
        out->outcome = ROUTE_NOT_RECORDED;
        return;
    }
    task_entry_queue (r, e);
    out->outcome = ROUTE_NEW;
    out->state = TASK_SUBMITTED;
    out->task = task_view_json (&e->view, true);
    memcpy (out->id, e->task.id, sizeof out->id);
}

static void
take_reply (struct registry *r, struct task_entry *e, const struct caller *caller,
            const struct message_intake *message, const char *answer)
{
    free (e->reply_by);
    e->reply = answer ? x_strdup (answer) : text_with_references (r, caller, message);
    e->reply_by = copy_or_null (message->by ? message->by : caller->credential);
    if (! answer)
        return;
    if (message->message_id)
        strv_push (&e->answers, message->message_id);
    free (e->answered_id);
    free (e->answered_with);
    e->answered_id = copy_or_null (question_id (e->view.question));
    e->answered_with = x_asprintf ("%s, by %s", answer, e->reply_by ? e->reply_by : "a caller");
}

/* What became of the question a late message would answer. Owned, or NULL. */
static char *
late_answer (const struct task_entry *e, const struct message_intake *message)
{
    const char *id = question_id (message->data);
    return e->answered_id && (! id || str_eq (id, e->answered_id))
               ? x_asprintf ("its question was answered already: %s", e->answered_with)
               : NULL;
}

static void
route_continuation (struct registry *r, const struct caller *caller, struct task_entry *e,
                    const struct message_intake *message, struct route_result *out)
{
    if (message->context_id && strcmp (message->context_id, e->task.context_id) != 0) {
        out->outcome = ROUTE_CONTEXT_DIFFERS;
        out->context = x_strdup (e->task.context_id);
        return;
    }
    const char *answer = NULL;
    if (e->view.question && message->message_id &&
        strv_contains (&e->answers, message->message_id)) {
        out->outcome = ROUTE_NO_ANSWER;
        out->why = x_asprintf ("message %s answered an earlier question", message->message_id);
        return;
    }
    if (e->view.question &&
        ! (answer = question_answer (e->view.question, message->text, message->data, &out->why))) {
        out->outcome = ROUTE_NO_ANSWER;
        return;
    }
    if (r->spec.record_reply)
        r->spec.record_reply (r->spec.record_ctx, e->task.id, message->message_id,
                              message->traceparent);
    take_reply (r, e, caller, message, answer);
    task_entry_set_state (r, e, TASK_WORKING);
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
    task_entries_retire (r);
    if (! message->task_id) {
        route_new (r, caller, message, out);
    } else {
        _cleanup_found_ struct found_task f = find_anywhere (r, caller, message->task_id);
        const struct task_view *view = view_of (&f);
        struct task_entry *e = f.entry;
        out->outcome = view ? ROUTE_NOT_WAITING : ROUTE_NOT_FOUND;
        if (view) {
            out->state = view->state;
            memcpy (out->id, view->id, sizeof out->id);
        }
        if (e && e->view.state == TASK_INPUT_REQUIRED && ! e->reply)
            route_continuation (r, caller, e, message, out);
        else if (e)
            out->why = late_answer (e, message);
    }
    pthread_mutex_unlock (&r->lock);
}

json_t *
registry_task_json (struct registry *r, const struct caller *caller, const char *task_id,
                    bool *settled, enum task_state *state)
{
    pthread_mutex_lock (&r->lock);
    _cleanup_found_ struct found_task f = find_anywhere (r, caller, task_id);
    const struct task_view *view = view_of (&f);
    json_t *json = view ? task_view_json (view, true) : NULL;
    if (view && settled)
        *settled = ! f.entry || is_settled (f.entry);
    if (view && state)
        *state = view->state;
    pthread_mutex_unlock (&r->lock);
    return json;
}

bool
registry_when_settled (struct registry *r, const struct caller *caller, const char *task_id,
                       registry_settled_fn *fn, void *ctx)
{
    pthread_mutex_lock (&r->lock);
    _cleanup_found_ struct found_task f = find_anywhere (r, caller, task_id);
    const struct task_view *view = view_of (&f);
    if (view && (! f.entry || is_settled (f.entry)))
        fn (ctx, task_view_json (view, true));
    else if (view) {
        struct waiter *w = x_new0 (struct waiter);
        *w = (struct waiter){ fn, ctx, f.entry->waiters };
        f.entry->waiters = w;
    }
    pthread_mutex_unlock (&r->lock);
    return view != NULL;
}

void
registry_settle_waiters (struct registry *r)
{
    pthread_mutex_lock (&r->lock);
    for (size_t i = 0; i < r->len; i++)
        task_entry_answer_waiters (r->entries[i]);
    pthread_mutex_unlock (&r->lock);
}

static bool
is_listed (const struct registry *r, const struct task_entry *e, const struct caller *caller,
           const struct list_query *q)
{
    return may_see (r, caller, e->task.owner) && ! q->matches_nothing &&
           (! q->context_id || strcmp (q->context_id, e->task.context_id) == 0) &&
           (! q->has_state || q->state == e->view.state) &&
           (! q->has_after || e->view.timestamp_ms >= q->after_ms);
}

/* --- lists --- */

/* Both kinds of tasks by revision, the newest first: those that are held, and those on disk. */
struct listing {
    const struct registry *r;
    const struct caller *caller;
    const struct list_query *query;
    const struct task_entry *held; /* the next of them */
    struct ended_filter filter;
    size_t at;               /* of those on disk */
    struct ended_task ended; /* the next of them; its id is NULL when there is none */
};

static void
skip_unlisted (struct listing *l)
{
    while (l->held && (! is_listed (l->r, l->held, l->caller, l->query) ||
                       (l->query->has_cursor && l->held->revision >= l->query->cursor_revision)))
        l->held = l->held->older;
}

static void
take_next_ended (struct listing *l)
{
    ended_task_clear (&l->ended);
    if (l->r->ended && ! l->query->matches_nothing)
        (void)ended_tasks_next (l->r->ended, &l->filter, &l->at, &l->ended);
}

static void
listing_begin (struct listing *l)
{
    const struct list_query *q = l->query;
    l->held = l->r->newest;
    l->filter = (struct ended_filter){
        .context_id = q->context_id,
        .owner = l->caller->credential,
        .is_owned = ! l->r->spec.is_public && ! str_eq (l->caller->credential, "operator"),
        .has_state = q->has_state,
        .has_after = q->has_after,
        .state = q->state,
        .after_ms = q->after_ms,
    };
    if (l->r->ended)
        l->at = ended_tasks_below (l->r->ended, q->has_cursor ? q->cursor_revision : UINT64_MAX);
    skip_unlisted (l);
    take_next_ended (l);
}

/* The next view and its revision, or NULL. */
static const struct task_view *
listing_peek (const struct listing *l, uint64_t *revision)
{
    bool is_held = l->held && (! l->ended.view.id || l->held->revision > l->ended.revision);
    if (! is_held && ! l->ended.view.id)
        return NULL;
    *revision = is_held ? l->held->revision : l->ended.revision;
    return is_held ? &l->held->view : &l->ended.view;
}

static void
listing_step (struct listing *l, const struct task_view *shown)
{
    if (shown == &l->ended.view) {
        take_next_ended (l);
        return;
    }
    l->held = l->held->older;
    skip_unlisted (l);
}

static uint64_t
listing_total (const struct listing *l)
{
    uint64_t total = 0;
    if (l->r->ended && ! l->query->matches_nothing)
        total = ended_tasks_count (l->r->ended, &l->filter);
    for (const struct task_entry *e = l->r->newest; e; e = e->older)
        total += is_listed (l->r, e, l->caller, l->query);
    return total;
}

/* Newest revision first; the cursor is a position, so what changed meanwhile has moved ahead of it.
 */
json_t *
registry_list_json (struct registry *r, const struct caller *caller, const struct list_query *query)
{
    json_t *tasks = json_array ();
    _cleanup_free_ char *token = NULL, *last = NULL;
    uint64_t revision, last_revision = 0;
    pthread_mutex_lock (&r->lock);
    struct listing l = { .r = r, .caller = caller, .query = query };
    listing_begin (&l);
    for (const struct task_view *v; ! token && (v = listing_peek (&l, &revision));) {
        if (json_array_size (tasks) == query->page_size) {
            token = task_page_token (last_revision, last);
            break;
        }
        json_array_append_new (tasks, task_view_listed_json (v, query->includes_artifacts));
        free (last);
        last = x_strdup (v->id);
        last_revision = revision;
        listing_step (&l, v);
    }
    uint64_t total = listing_total (&l);
    ended_task_clear (&l.ended);
    pthread_mutex_unlock (&r->lock);
    json_t *result = json_object ();
    json_object_set_new (result, "tasks", tasks);
    json_set_string (result, "nextPageToken", token ? token : "");
    json_set_u64 (result, "pageSize", query->page_size);
    json_set_u64 (result, "totalSize", total);
    return result;
}

enum cancel_outcome
registry_cancel (struct registry *r, const struct caller *caller, const char *task_id,
                 json_t **task, enum task_state *state)
{
    *task = NULL;
    pthread_mutex_lock (&r->lock);
    _cleanup_found_ struct found_task f = find_anywhere (r, caller, task_id);
    struct task_entry *e = f.entry;
    struct cancel *raised = NULL;
    enum cancel_outcome outcome = ! view_of (&f)                         ? CANCEL_NOT_FOUND
                                  : ! e || task_entry_is_over (e, state) ? CANCEL_ENDED
                                                                         : CANCEL_DONE;
    if (! e && outcome == CANCEL_ENDED)
        *state = view_of (&f)->state;
    if (outcome == CANCEL_DONE) {
        raised = cancel_ref (e->task.cancel);
        task_entry_cancel (r, e);
        *task = task_view_json (&e->view, true);
    }
    pthread_mutex_unlock (&r->lock);
    if (raised)
        cancel_raise (raised);
    cancel_unref (raised);
    return outcome;
}

json_t *
registry_residue (const struct registry *r, const char *task_id)
{
    json_t *items = json_array ();
    if (r->residue)
        r->residue (r->residue_ctx, task_id, items);
    return items;
}
