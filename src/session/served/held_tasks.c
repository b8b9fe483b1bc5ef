/* SPDX-License-Identifier: Apache-2.0 */
#include "session/served/held_tasks.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "session/served/held_internal.h"

#include <string.h>

#define TASKS_MAX 64                      /* of all clients, those that are over among them */
#define KEPT_MS   ((uint64_t)3600 * 1000) /* after the last that happened */

const struct exported_task *
held_as_task (const struct exported_mcp *m, const char *tool)
{
    for (size_t i = 0; i < m->tasks.len; i++)
        if (str_eq (m->tasks.items[i].tool, tool))
            return &m->tasks.items[i];
    return NULL;
}

bool
held_needs_tasks (const struct exported_mcp *m)
{
    for (size_t i = 0; i < m->tasks.len; i++)
        if (m->tasks.items[i].required.value)
            return true;
    return false;
}

/* Under the lock: what was kept long enough goes. How many are left. */
static unsigned
sweep (struct held_calls *all)
{
    const uint64_t now = clock_unix_ms ();
    unsigned count = 0;
    for (struct held_call *h = all->open, *next; h; h = next) {
        next = h->next;
        if (h->task.is_one && h->is_over && now > h->task.changed_ms + KEPT_MS)
            held_forget (h);
        else
            count += h->task.is_one;
    }
    return count;
}

/* --- what is told --- */

static const char *
status_of (const struct held_call *h)
{
    if (h->is_over)
        return h->task.is_cancelled                     ? "cancelled"
               : json_object_get (h->task.end, "error") ? "failed"
                                                        : "completed";
    return json_object_size (h->asked) && ! h->task.is_cancelled ? "input_required" : "working";
}

/* What its client was told to hold good only grows while it goes on. */
static json_t *
handle_of (const struct held_call *h)
{
    char changed[25];
    clock_rfc3339 (h->task.changed_ms, changed);
    json_t *o = ask_handle_of (h->id.text, status_of (h), changed);
    json_set_u64 (o, "ttlMs", h->task.changed_ms - id_time_ms (h->id.text) + KEPT_MS);
    if (h->task.said)
        json_set_string (o, "statusMessage", h->task.said);
    return o;
}

bool
held_task_begin (struct held_call *h, json_t **handle)
{
    if (! h->task.as || sweep (&h->served->held) >= TASKS_MAX)
        return false;
    h->task.is_one = true;
    held_task_touch (h);
    *handle = handle_of (h);
    json_set_string (*handle, "resultType", "task");
    return true;
}

/* --- what is asked of one --- */

/* Under the lock: the client's own, or NULL. */
static struct held_call *
find (struct served *v, const struct mcp_call *call)
{
    struct held_call *h = v->held.open;
    sweep (&v->held);
    while (h && ! (h->task.is_one && str_eq (h->id.text, call->name)))
        h = h->next;
    const char *principal = call->request->principal;
    bool is_own = h && (h->principal ? str_eq (h->principal, principal) : ! principal);
    return is_own ? h : NULL;
}

/* {code, message, data} of an error, a new value. */
static json_t *
error_of (const struct mcp_answer *a)
{
    json_t *o = json_pack ("{s:i}", "code", a->code);
    json_set_string (o, "message", a->text ? a->text : "");
    if (a->data)
        json_object_set (o, "data", a->data);
    return o;
}

json_t *
held_task_end (const struct held_call *h)
{
    _cleanup_mcp_answer_ struct mcp_answer a = { 0 };
    json_t *o = json_object ();
    if (h->outcome.mcp_error) {
        json_object_set (o, "error", h->outcome.mcp_error);
        return o;
    }
    served_answer (h->served, h->name, h->revision, &h->outcome, &a);
    if (a.result)
        json_object_set (o, "result", a.result);
    else
        json_object_set_new (o, "error", error_of (&a));
    return o;
}

bool
held_task_get (struct served *v, const struct mcp_call *call, struct mcp_answer *answer)
{
    pthread_mutex_lock (&v->held.lock);
    struct held_call *h = find (v, call);
    json_t *o = h ? handle_of (h) : NULL;
    if (h && h->is_over && ! h->task.is_cancelled)
        json_object_update_new (o, json_deep_copy (h->task.end));
    else if (h && str_eq (status_of (h), "input_required"))
        json_object_set_new (o, "inputRequests", json_deep_copy (h->asked));
    pthread_mutex_unlock (&v->held.lock);
    answer->result = o;
    return o != NULL;
}

bool
held_task_update (struct served *v, const struct mcp_call *call, const json_t *responses,
                  struct mcp_answer *answer)
{
    pthread_mutex_lock (&v->held.lock);
    struct held_call *h = find (v, call);
    if (h && h->asked) {
        held_take (h, responses);
        held_task_touch (h);
        pthread_cond_broadcast (&v->held.changed);
    }
    pthread_mutex_unlock (&v->held.lock);
    answer->result = h ? json_object () : NULL;
    return h != NULL;
}

bool
held_task_cancel (struct served *v, const struct mcp_call *call, struct mcp_answer *answer)
{
    pthread_mutex_lock (&v->held.lock);
    struct held_call *h = find (v, call);
    struct cancel *cancel = h && ! h->is_over ? cancel_ref (h->cancel) : NULL;
    if (cancel)
        h->task.is_cancelled = true;
    pthread_mutex_unlock (&v->held.lock);
    if (cancel) { /* not under the lock, which who listens takes */
        cancel_raise (cancel);
        cancel_unref (cancel);
    }
    answer->result = h ? json_object () : NULL;
    return h != NULL;
}
