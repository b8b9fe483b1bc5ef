/* SPDX-License-Identifier: Apache-2.0 */
#include "session/served/held_internal.h"
#include "session/served/held_tasks.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "mcp/input.h"
#include "mcp/logging.h"

#include <errno.h>
#include <string.h>

#define STACK_BYTES ((size_t)1024 * 1024)
#define ASKING_MAX  32                      /* calls that wait for an answer at once */
#define ANSWER_MS   ((uint64_t)600 * 1000)  /* a question is open so long */
#define STATE_MS    (ANSWER_MS + 60 * 1000) /* its state a little longer */
#define SAID_MAX    200

void
held_init (struct held_calls *h)
{
    pthread_mutex_init (&h->lock, NULL);
    condition_init (&h->changed);
}

void
held_destroy (struct held_calls *h)
{
    while (h->open)
        held_forget (h->open); /* tasks that are over */
    pthread_cond_destroy (&h->changed);
    pthread_mutex_destroy (&h->lock);
}

/* --- whom a client lets be asked --- */

static bool
takes_all (const json_t *capabilities, const json_t *requests)
{
    const char *key;
    json_t *request;
    json_object_foreach ((json_t *)(uintptr_t)requests, key, request)
    {
        if (! mcp_input_is_taken (capabilities, request))
            return false;
    }
    return json_object_size (requests) > 0;
}

/* --- an older client --- */

/* One after the other, while the call runs. */
static json_t *
ask_now (void *ctx, const json_t *requests, uint64_t timeout_ms)
{
    const struct mcp_call *call = ctx;
    _cleanup_json_ json_t *responses = json_object ();
    const char *key;
    json_t *request;
    if (! takes_all (call->request->capabilities, requests))
        return NULL;
    json_object_foreach ((json_t *)(uintptr_t)requests, key, request)
    {
        json_t *response = call->sink->ask (call->sink->ctx, json_get_string (request, "method"),
                                            json_object_get (request, "params"),
                                            timeout_ms < ANSWER_MS ? timeout_ms : ANSWER_MS);
        if (! response)
            return NULL;
        json_object_set_new (responses, key, response);
    }
    return steal_ptr (&responses);
}

static void
tell_now (void *ctx, double at, double total, const char *message)
{
    const struct mcp_call *call = ctx;
    call->sink->progress (call->sink->ctx, at, total, message);
}

/* What was never sent (no data) or nobody can be told is left out. */
static void
say_before (const struct mcp_sink *sink, const char *level, const char *logger, const json_t *data)
{
    if (sink && data)
        sink->send (sink->ctx, mcp_log_text (level, logger, data));
}

static void
say_now (void *ctx, const char *level, const char *logger, const json_t *data)
{
    const struct mcp_call *call = ctx;
    say_before (call->sink, level, logger, data);
}

static void
run_now (struct served *v, const struct mcp_call *call, struct call_outcome *o)
{
    void *ctx = (void *)(uintptr_t)call;
    const struct call_listener listener = { tell_now, say_now, ctx, call->request->log_level };
    unsigned takes = mcp_inputs_declared (call->request->capabilities);
    const struct asked_client client = { ask_now, ctx, takes, v->is_stdio };
    bool can_ask =
        call->request->revision->era == MCP_LEGACY && call->sink && call->sink->ask && takes;
    const struct served_call c = { .name = call->name,
                                   .arguments = call->arguments,
                                   .id = call->request->message.id,
                                   .traceparent = served_traceparent (call),
                                   .cancel = call->cancel,
                                   .listener = call->sink ? &listener : NULL,
                                   .client = can_ask ? &client : NULL };
    served_call_run (v, &c, o);
}

/* --- a modern one: the call's own thread --- */

static void
wake (void *ctx)
{
    struct served *v = ctx;
    pthread_mutex_lock (&v->held.lock);
    pthread_cond_broadcast (&v->held.changed);
    pthread_mutex_unlock (&v->held.lock);
}

/* Under the lock. False: they are not answered. */
static bool
wait_for_answers (struct held_call *h, uint64_t until_ms)
{
    struct held_calls *all = &h->served->held;
    struct timespec at = { (time_t)(until_ms / 1000), (long)(until_ms % 1000) * 1000000 };
    int status = 0;
    all->asking++;
    pthread_cond_broadcast (&all->changed);
    while (json_object_size (h->asked) && status != ETIMEDOUT && ! cancel_is_raised (h->cancel))
        status = pthread_cond_timedwait (&all->changed, &all->lock, &at);
    all->asking--;
    return ! json_object_size (h->asked);
}

static json_t *
ask_later (void *ctx, const json_t *requests, uint64_t timeout_ms)
{
    struct held_call *h = ctx;
    struct held_calls *all = &h->served->held;
    uint64_t until_ms = clock_monotonic_ms () + (timeout_ms < ANSWER_MS ? timeout_ms : ANSWER_MS);
    json_t *responses = NULL;
    uint64_t listener = cancel_add (h->cancel, wake, h->served);
    pthread_mutex_lock (&all->lock);
    /* Who declared what is in the request that waits; a task is its own client's. */
    const json_t *declared = h->waiter        ? h->waiter->request->capabilities
                             : h->task.is_one ? h->capabilities
                                              : NULL;
    if (! all->is_closing && all->asking < ASKING_MAX && takes_all (declared, requests)) {
        h->asked = json_copy ((json_t *)(uintptr_t)requests);
        h->given = json_object ();
        held_take (h, h->ahead);
        held_task_touch (h);
        if (wait_for_answers (h, until_ms))
            responses = steal_ptr (&h->given);
        json_decref (h->asked);
        json_decref (h->given);
        h->asked = h->given = NULL;
    }
    pthread_mutex_unlock (&all->lock);
    cancel_remove (h->cancel, listener);
    return responses;
}

/* Where the request that waits is told something, which a transport may stop under its lock; NULL:
 * none waits. */
static const struct mcp_sink *
begin_telling (struct held_call *h)
{
    struct held_calls *all = &h->served->held;
    pthread_mutex_lock (&all->lock);
    const struct mcp_sink *sink = h->waiter ? h->waiter->sink : NULL;
    h->is_telling = sink != NULL;
    pthread_mutex_unlock (&all->lock);
    return sink;
}

static void
end_telling (struct held_call *h)
{
    struct held_calls *all = &h->served->held;
    pthread_mutex_lock (&all->lock);
    h->is_telling = false;
    pthread_cond_broadcast (&all->changed);
    pthread_mutex_unlock (&all->lock);
}

static void
keep_said (struct held_call *h, const char *message)
{
    pthread_mutex_lock (&h->served->held.lock);
    free (h->task.said);
    h->task.said = x_strndup (message, utf8_cut (message, strlen (message), SAID_MAX));
    held_task_touch (h);
    pthread_mutex_unlock (&h->served->held.lock);
}

static void
tell_waiter (void *ctx, double at, double total, const char *message)
{
    struct held_call *h = ctx;
    if (message && h->task.as)
        keep_said (h, message);
    const struct mcp_sink *sink = begin_telling (ctx);
    if (sink)
        sink->progress (sink->ctx, at, total, message);
    end_telling (ctx);
}

static void
say_to_waiter (void *ctx, const char *level, const char *logger, const json_t *data)
{
    say_before (begin_telling (ctx), level, logger, data);
    end_telling (ctx);
}

static void *
held_thread (void *arg)
{
    struct held_call *h = arg;
    struct held_calls *all = &h->served->held;
    const struct call_listener listener = { tell_waiter, say_to_waiter, h, h->log_level };
    const unsigned takes = mcp_inputs_declared (h->capabilities);
    const struct asked_client client = { ask_later, h, takes, h->served->is_stdio };
    const struct served_call c = { .name = h->name,
                                   .arguments = h->arguments,
                                   .id = h->message_id,
                                   .traceparent = h->traceparent,
                                   .cancel = h->cancel,
                                   .listener = &listener,
                                   .client = &client };
    served_call_run (h->served, &c, &h->outcome);
    served_tell_changes (h->served);
    pthread_mutex_lock (&all->lock);
    if (h->task.is_one) { /* it stays one; before it is over nobody sees its end */
        pthread_mutex_unlock (&all->lock);
        json_t *end = held_task_end (h);
        pthread_mutex_lock (&all->lock);
        h->task.end = end;
    }
    h->is_over = true;
    held_task_touch (h);
    if (! h->waiter && ! h->task.is_one)
        held_forget (h);
    all->running--;
    pthread_cond_broadcast (&all->changed);
    pthread_mutex_unlock (&all->lock);
    return NULL;
}

/* --- and the requests that wait for it --- */

static struct held_call *
held_new (struct served *v, const struct mcp_call *call)
{
    struct held_call *h = x_new0 (struct held_call);
    const char *traceparent = served_traceparent (call);
    h->served = v;
    h->task.as = ask_takes_handles (call) ? held_as_task (v->exported, call->name) : NULL;
    h->id = id_new (h->task.as ? MCP_TASK_OF_CALL : "ask_");
    h->principal = call->request->principal ? x_strdup (call->request->principal) : NULL;
    h->revision = call->request->revision;
    h->name = x_strdup (call->name);
    h->traceparent = traceparent ? x_strdup (traceparent) : NULL;
    h->arguments = json_incref ((json_t *)(uintptr_t)call->arguments);
    h->message_id = json_incref ((json_t *)(uintptr_t)call->request->message.id);
    h->log_level = call->request->log_level;
    h->capabilities = json_incref ((json_t *)(uintptr_t)call->request->capabilities);
    h->cancel = cancel_new ();
    h->ahead = json_incref (json_object_get (call->params, "inputResponses"));
    h->waiter = call;
    return h;
}

/* NULL: it cannot be held. */
static struct held_call *
begin (struct served *v, const struct mcp_call *call)
{
    pthread_t thread;
    pthread_attr_t attributes;
    struct held_call *h = held_new (v, call);
    pthread_attr_init (&attributes);
    pthread_attr_setstacksize (&attributes, STACK_BYTES);
    pthread_attr_setdetachstate (&attributes, PTHREAD_CREATE_DETACHED);
    pthread_mutex_lock (&v->held.lock);
    bool is_held =
        ! v->held.is_closing && pthread_create (&thread, &attributes, held_thread, h) == 0;
    if (is_held) {
        h->next = v->held.open;
        v->held.open = h;
        v->held.running++;
    } else {
        held_free (h);
    }
    pthread_mutex_unlock (&v->held.lock);
    pthread_attr_destroy (&attributes);
    return is_held ? h : NULL;
}

static void
set_failure (struct mcp_answer *answer, const char *text)
{
    answer->result = mcp_text_result (text, strlen (text), true);
}

/* The call that was asked about, with what came for it. NULL: *answer. */
static struct held_call *
come_back (struct served *v, const struct mcp_call *call, struct mcp_answer *answer)
{
    _cleanup_free_ char *id = ask_resumed_task (v, call, answer);
    if (! id)
        return NULL;
    pthread_mutex_lock (&v->held.lock);
    struct held_call *h = v->held.open;
    while (h && strcmp (h->id.text, id) != 0)
        h = h->next;
    bool is_taken = h && h->waiter;
    if (h && ! is_taken) {
        h->waiter = call;
        held_take (h, json_object_get (call->params, "inputResponses"));
        pthread_cond_broadcast (&v->held.changed);
    }
    pthread_mutex_unlock (&v->held.lock);
    if (! h)
        set_failure (answer, "the call does not wait for an answer any more: call the tool again");
    else if (is_taken)
        set_failure (answer, "another request waits for this call");
    return is_taken ? NULL : h;
}

static void
stop (void *ctx)
{
    struct held_call *h = ctx;
    cancel_raise (h->cancel);
}

/* Under the lock. A question is asked of the request that waits, but for a task at once. */
static bool
has_asked (const struct held_call *h, bool is_at_once)
{
    return ! is_at_once && json_object_size (h->asked);
}

/* Until it is over, asks, or goes on as a task. */
static void
wait_for_it (struct held_call *h, struct cancel *cancel, uint64_t until_ms, bool is_at_once)
{
    struct held_calls *all = &h->served->held;
    struct timespec at = { (time_t)(until_ms / 1000), (long)(until_ms % 1000) * 1000000 };
    int status = 0;
    uint64_t listener = cancel_add (cancel, stop, h);
    pthread_mutex_lock (&all->lock);
    while (h->is_telling || (! h->is_over && ! has_asked (h, is_at_once) && status != ETIMEDOUT))
        status = until_ms == UINT64_MAX || status == ETIMEDOUT
                     ? pthread_cond_wait (&all->changed, &all->lock)
                     : pthread_cond_timedwait (&all->changed, &all->lock, &at);
    pthread_mutex_unlock (&all->lock);
    cancel_remove (cancel, listener); /* not under the lock, which stopping it takes */
}

/* What a request that waits goes away with. */
struct settled {
    bool is_over;     /* *o is what came of it */
    json_t *requests; /* what it asks; owned */
    json_t *handle;   /* of the task it is now; owned */
};

/* Under the lock. */
static bool
take_settled (struct held_call *h, bool is_at_once, bool is_late, struct settled *out)
{
    if (h->is_telling) /* it tells something once more */
        return false;
    if (h->is_over)
        out->is_over = true;
    else if (has_asked (h, is_at_once))
        out->requests = json_copy (h->asked);
    else if (! is_late || ! held_task_begin (h, &out->handle))
        return false;
    h->waiter = NULL;
    return true;
}

/* A task that comes back with answers goes on at once. */
static struct settled
settle (struct held_call *h, const struct mcp_call *call, bool is_back, struct call_outcome *o)
{
    struct held_calls *all = &h->served->held;
    const struct exported_task *as = h->task.as;
    const uint64_t wait_ms = as && ! is_back ? as->wait_secs.value * 1000 : 0;
    uint64_t until_ms = as ? clock_monotonic_ms () + wait_ms : UINT64_MAX;
    const bool is_at_once = as && ! is_back && ! wait_ms;
    struct settled out = { 0 };
    for (bool is_settled = false; ! is_settled;) {
        wait_for_it (h, call->cancel, until_ms, is_at_once);
        pthread_mutex_lock (&all->lock);
        bool is_late = clock_monotonic_ms () >= until_ms;
        is_settled = take_settled (h, is_at_once, is_late, &out);
        if (is_late && ! is_settled && ! h->is_telling)
            until_ms = UINT64_MAX; /* there are too many tasks: it is waited for */
        if (out.is_over) {
            *o = h->outcome;
            h->outcome = (struct call_outcome){ 0 };
            held_forget (h);
        }
        pthread_mutex_unlock (&all->lock);
    }
    return out;
}

/* A client that knows no tasks is told what it lacks. */
static bool
refuse_taskless (struct served *v, const struct mcp_call *call, struct mcp_answer *answer)
{
    const struct exported_task *as = held_as_task (v->exported, call->name);
    if (! as || ! as->required.value || ask_takes_handles (call))
        return false;
    if (call->request->revision->era == MCP_MODERN)
        mcp_refuse_taskless (answer, call->name);
    else
        set_failure (answer, "this tool is called as a task only, and the client knows no tasks");
    return true;
}

bool
held_run (struct served *v, const struct mcp_call *call, struct call_outcome *o,
          struct mcp_answer *answer)
{
    bool is_modern = call->request->revision->era == MCP_MODERN;
    bool is_back = is_modern && json_object_get (call->params, "requestState");
    bool is_task = ask_takes_handles (call) && held_as_task (v->exported, call->name);
    bool may_hold = is_task || (is_modern && mcp_inputs_declared (call->request->capabilities));
    if (refuse_taskless (v, call, answer))
        return false;
    struct held_call *h = is_back ? come_back (v, call, answer) : may_hold ? begin (v, call) : NULL;
    if (! h && is_back)
        return false;
    if (! h) {
        run_now (v, call, o);
        return true;
    }
    const struct id id = h->id;
    const struct settled settled = settle (h, call, is_back, o);
    if (settled.requests)
        ask_want_input (v, call, &(struct ask_wanted){ id.text, settled.requests, STATE_MS },
                        answer);
    else if (settled.handle)
        answer->result = settled.handle;
    return settled.is_over;
}

void
held_close (struct served *v)
{
    pthread_mutex_lock (&v->held.lock);
    v->held.is_closing = true;
    pthread_mutex_unlock (&v->held.lock);
    cancel_raise (v->task.cancel);
}

void
held_drain (struct served *v)
{
    pthread_mutex_lock (&v->held.lock);
    while (v->held.running)
        pthread_cond_wait (&v->held.changed, &v->held.lock);
    pthread_mutex_unlock (&v->held.lock);
}
