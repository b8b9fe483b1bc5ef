/* SPDX-License-Identifier: Apache-2.0 */
#include "session/served/held.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/ids.h"
#include "mcp/input.h"
#include "mcp/logging.h"
#include "session/served/served_internal.h"

#include <string.h>

#define STACK_BYTES ((size_t)1024 * 1024)
#define ASKING_MAX  32                      /* calls that wait for an answer at once */
#define ANSWER_MS   ((uint64_t)600 * 1000)  /* a question is open so long */
#define STATE_MS    (ANSWER_MS + 60 * 1000) /* its state a little longer */

struct held_call {
    struct held_call *next;
    struct served *served;
    struct id id;
    struct served_call call; /* what is run: copies, owned */
    char *name, *traceparent;
    json_t *arguments, *message_id;
    unsigned takes; /* of mcp_input: what its client declared with the call */
    const char *log_level;
    struct cancel *cancel;

    /* under the lock */
    const struct mcp_call *waiter; /* the request that waits for it now; NULL: none does */
    json_t *asked;                 /* what is not answered yet; NULL: nothing is asked */
    json_t *given;                 /* what came */
    json_t *ahead;                 /* what came with the call, before it was asked */
    struct call_outcome outcome;
    bool is_over, is_telling; /* the latter: the waiter's own thread must stay */
};

void
held_init (struct held_calls *h)
{
    pthread_mutex_init (&h->lock, NULL);
    condition_init (&h->changed);
}

void
held_destroy (struct held_calls *h)
{
    pthread_cond_destroy (&h->changed);
    pthread_mutex_destroy (&h->lock);
}

static void
held_free (struct held_call *h)
{
    free (h->name);
    free (h->traceparent);
    json_decref (h->arguments);
    json_decref (h->message_id);
    json_decref (h->asked);
    json_decref (h->given);
    json_decref (h->ahead);
    cancel_unref (h->cancel);
    call_outcome_clear (&h->outcome);
    free (h);
}

/* Under the lock. */
static void
forget (struct held_call *h)
{
    struct held_call **at = &h->served->held.open;
    while (*at != h)
        at = &(*at)->next;
    *at = h->next;
    held_free (h);
}

/* --- whom a client lets be asked --- */

static bool
takes_all (const struct mcp_request *r, const json_t *requests)
{
    const char *key;
    json_t *request;
    json_object_foreach ((json_t *)(uintptr_t)requests, key, request)
    {
        if (! mcp_input_is_taken (r->capabilities, request))
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
    if (! takes_all (call->request, requests))
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

/* Moves what of <responses> answers something from what is asked to what came. */
static void
take (struct held_call *h, const json_t *responses)
{
    const char *key;
    void *tmp;
    json_t *request;
    json_object_foreach_safe (h->asked, tmp, key, request)
    {
        json_t *response = json_object_get (responses, key);
        if (! mcp_input_is_answered (request, response))
            continue;
        json_object_set (h->given, key, response);
        json_object_del (h->asked, key);
    }
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
    /* Who declared what is in the request that waits, and a question is asked of none else. */
    if (! all->is_closing && all->asking < ASKING_MAX && h->waiter &&
        takes_all (h->waiter->request, requests)) {
        h->asked = json_copy ((json_t *)(uintptr_t)requests);
        h->given = json_object ();
        take (h, h->ahead);
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
tell_waiter (void *ctx, double at, double total, const char *message)
{
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
    const struct asked_client client = { ask_later, h, h->takes, h->served->is_stdio };
    const struct served_call c = { .name = h->name,
                                   .arguments = h->arguments,
                                   .id = h->message_id,
                                   .traceparent = h->traceparent,
                                   .cancel = h->cancel,
                                   .listener = &listener,
                                   .client = &client };
    served_call_run (h->served, &c, &h->outcome);
    pthread_mutex_lock (&all->lock);
    h->is_over = true;
    if (! h->waiter)
        forget (h);
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
    h->id = id_new ("ask_");
    h->name = x_strdup (call->name);
    h->traceparent = traceparent ? x_strdup (traceparent) : NULL;
    h->arguments = json_incref ((json_t *)(uintptr_t)call->arguments);
    h->message_id = json_incref ((json_t *)(uintptr_t)call->request->message.id);
    h->log_level = call->request->log_level;
    h->takes = mcp_inputs_declared (call->request->capabilities);
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
        take (h, json_object_get (call->params, "inputResponses"));
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

/* Until it is over or asks. True: it is over, *o is what came of it. Else *requests, owned. */
static bool
settle (struct held_call *h, struct cancel *cancel, struct call_outcome *o, json_t **requests)
{
    struct held_calls *all = &h->served->held;
    bool is_over = false;
    while (! is_over && ! *requests) {
        uint64_t listener = cancel_add (cancel, stop, h);
        pthread_mutex_lock (&all->lock);
        while (h->is_telling || (! h->is_over && ! json_object_size (h->asked)))
            pthread_cond_wait (&all->changed, &all->lock);
        pthread_mutex_unlock (&all->lock);
        cancel_remove (cancel, listener); /* not under the lock, which stopping it takes */
        pthread_mutex_lock (&all->lock);
        is_over = h->is_over;
        if (! is_over && json_object_size (h->asked))
            *requests = json_copy (h->asked);
        if (is_over || *requests)
            h->waiter = NULL;
        if (is_over) {
            *o = h->outcome;
            h->outcome = (struct call_outcome){ 0 };
            forget (h);
        }
        pthread_mutex_unlock (&all->lock);
    }
    return is_over;
}

bool
held_run (struct served *v, const struct mcp_call *call, struct call_outcome *o,
          struct mcp_answer *answer)
{
    bool is_modern = call->request->revision->era == MCP_MODERN;
    bool is_back = is_modern && json_object_get (call->params, "requestState");
    bool may_hold = is_modern && mcp_inputs_declared (call->request->capabilities);
    struct held_call *h = is_back ? come_back (v, call, answer) : may_hold ? begin (v, call) : NULL;
    if (! h && is_back)
        return false;
    if (! h) {
        run_now (v, call, o);
        return true;
    }
    const struct id id = h->id;
    json_t *requests = NULL;
    if (settle (h, call->cancel, o, &requests))
        return true;
    ask_want_input (v, call, &(struct ask_wanted){ id.text, requests, STATE_MS }, answer);
    return false;
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
