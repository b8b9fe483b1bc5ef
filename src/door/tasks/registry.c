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
is_visible (const struct registry *r, const struct task_entry *e, const struct caller *caller)
{
    return r->spec.is_public || str_eq (caller->credential, "operator") ||
           (e->task.owner && str_eq (caller->credential, e->task.owner));
}

static struct task_entry *
find_visible (struct registry *r, const struct caller *caller, const char *id)
{
    struct task_entry *e = task_entry_find (r, id);
    return e && is_visible (r, e, caller) ? e : NULL;
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
        const struct task_entry *e = find_visible (r, caller, ids->items[i]);
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
    struct task_entry *e = task_entry_add (r, message->origin, NULL, message->context_id);
    e->task.text = text;
    e->task.message_id = copy_or_null (message->message_id);
    e->task.owner = copy_or_null (caller->credential);
    e->task.caller_member = copy_or_null (caller->member);
    e->task.traceparent = copy_or_null (message->traceparent);
    e->task.source = x_strdup ("a2a");
    e->task.is_trusted = message->is_trusted;
    e->task.forgets_session = message->forgets_session;
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
    if (! message->task_id) {
        route_new (r, caller, message, out);
    } else {
        struct task_entry *e = find_visible (r, caller, message->task_id);
        out->outcome = e ? ROUTE_NOT_WAITING : ROUTE_NOT_FOUND;
        if (e) {
            out->state = e->view.state;
            memcpy (out->id, e->task.id, sizeof out->id);
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
    const struct task_entry *e = find_visible (r, caller, task_id);
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
    struct task_entry *e = find_visible (r, caller, task_id);
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
        task_entry_answer_waiters (r->entries[i]);
    pthread_mutex_unlock (&r->lock);
}

static bool
is_listed (const struct registry *r, const struct task_entry *e, const struct caller *caller,
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
    const struct task_entry *last = NULL;
    pthread_mutex_lock (&r->lock);
    for (const struct task_entry *e = r->newest; e; e = e->older) {
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
    struct task_entry *e = find_visible (r, caller, task_id);
    enum cancel_outcome outcome = ! e                             ? CANCEL_NOT_FOUND
                                  : task_entry_is_over (e, state) ? CANCEL_ENDED
                                                                  : CANCEL_DONE;
    if (outcome == CANCEL_DONE) {
        task_entry_cancel (r, e);
        *task = task_view_json (&e->view, true);
    }
    pthread_mutex_unlock (&r->lock);
    if (outcome == CANCEL_DONE)
        cancel_raise (e->task.cancel);
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
