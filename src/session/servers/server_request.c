/* SPDX-License-Identifier: Apache-2.0 */
#include "session/servers/server_request.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "session/servers/server_internal.h"

#include <string.h>

static void
wake_waiter (void *ctx)
{
    struct mcp_server *s = ctx;
    pthread_mutex_lock (&s->lock);
    pthread_cond_broadcast (&s->changed);
    pthread_mutex_unlock (&s->lock);
}

/* Parameters with the token by which progress of this very request is told. */
static json_t *
with_token (const struct mcp_server *s, struct server_ask *ask, int64_t id)
{
    json_t *params = steal_ptr (&ask->params);
    if (strcmp (ask->method, "tools/call") != 0)
        return params;
    json_t *meta = json_object_get (params, "_meta");
    if (! meta)
        json_object_set_new (params, "_meta", meta = json_object ());
    json_object_set_new (meta, "progressToken", json_integer (id));
    const struct call_listener *listener = ask->listener;
    if (listener && listener->log_level && s->client.revision->era == MCP_MODERN)
        json_set_string (meta, MCP_META_LOG_LEVEL, listener->log_level);
    return params;
}

static void
send_request (struct mcp_server *s, struct pending *p)
{
    _cleanup_json_ json_t *params = with_token (s, p->ask, p->id);
    server_send_call (s, p->id, p->ask->method, params);
}

static void
abandon (struct mcp_server *s, const struct pending *p, const char *reason)
{
    if (strcmp (p->ask->method, "initialize") == 0) /* the one request that is not cancelled */
        return;
    s->way->drop (s, p->id, reason);
}

/* Somebody is asked meanwhile: the clock does not run. */
static void
answer_question (struct mcp_server *s, struct pending *p)
{
    _cleanup_mcp_message_ struct mcp_message question = p->question;
    p->question = (struct mcp_message){ 0 };
    uint64_t began = clock_monotonic_ms ();
    pthread_mutex_unlock (&s->lock);
    json_t *result = p->ask->answer (p->ask->ctx, question.method, question.params);
    char *text = mcp_client_answer (&question, result);
    pthread_mutex_lock (&s->lock);
    server_send_answer (s, text);
    p->heard_ms += clock_monotonic_ms () - began;
}

/* What it wrote instead may say why, as long as it never answered anything. */
static bool
fail_silent (struct mcp_server *s, const struct pending *p, uint64_t waited_ms,
             struct mur_error **err)
{
    _cleanup_free_ char *tail = s->is_opened ? x_strdup ("") : server_stderr_tail (s);
    return mur_fail (err, E_MCP_002, "server %s gave no answer to %s within %llu s%s%s%s",
                     s->setup.name, p->ask->method, (unsigned long long)(waited_ms / 1000),
                     p->progress_count ? " in spite of its progress" : "",
                     *tail ? ". It wrote: " : "", tail);
}

/* Who listens may be slow: not under the lock. */
static void
tell_steps (struct mcp_server *s, struct pending *p)
{
    while (p->step_count) {
        struct progress_step steps[PROGRESS_STEPS];
        size_t count = p->step_count;
        memcpy (steps, p->steps, sizeof steps);
        p->step_count = 0;
        pthread_mutex_unlock (&s->lock);
        for (size_t i = 0; i < count; i++) {
            p->ask->listener->progress (p->ask->listener->ctx, steps[i].at, steps[i].total,
                                        steps[i].message);
            free (steps[i].message);
        }
        pthread_mutex_lock (&s->lock);
    }
}

/* The same for what it said in words. */
static void
tell_messages (struct mcp_server *s, struct pending *p)
{
    const struct call_listener *who = p->ask->listener;
    while (p->said) {
        _cleanup_json_ json_t *said = steal_ptr (&p->said);
        size_t i;
        json_t *params;
        pthread_mutex_unlock (&s->lock);
        json_array_foreach (said, i, params)
            who->message (who->ctx, json_get_string (params, "level"), s->setup.name,
                          json_object_get (params, "data"));
        pthread_mutex_lock (&s->lock);
    }
}

/* Under the lock. False: it is over without an answer. */
static bool
wait_for_answer (struct mcp_server *s, struct pending *p, struct mur_error **err)
{
    uint64_t cap = clock_monotonic_ms () + p->ask->cap_ms;
    while (tell_steps (s, p), tell_messages (s, p), ! p->is_done) {
        uint64_t now = clock_monotonic_ms (), idle = p->heard_ms + p->ask->idle_ms;
        uint64_t at = idle < cap ? idle : cap;
        if (cancel_is_raised (p->ask->cancel)) {
            abandon (s, p, "cancelled");
            return false;
        }
        if (p->question.whole) {
            answer_question (s, p);
            continue;
        }
        if (now >= at) {
            abandon (s, p, "timeout");
            return fail_silent (s, p, idle < cap ? p->ask->idle_ms : p->ask->cap_ms, err);
        }
        struct timespec ts = { (time_t)(at / 1000), (long)(at % 1000) * 1000000 };
        pthread_cond_timedwait (&s->changed, &s->lock, &ts);
    }
    return true;
}

static bool
fail_dead (struct mcp_server *s, struct mur_error **err)
{
    _cleanup_free_ char *tail = server_stderr_tail (s);
    return mur_fail (err, s->io.death_code, "server %s: %s%s%s", s->setup.name,
                     s->io.death ? s->io.death : "it does not run", *tail ? ". It wrote: " : "",
                     tail);
}

static void
unlink_pending (struct mcp_server *s, const struct pending *p)
{
    for (struct pending **at = &s->pending; *at; at = &(*at)->next)
        if (*at == p) {
            *at = p->next;
            return;
        }
}

static json_t *
take_answer (struct mcp_server *s, struct pending *p, struct mur_error **err)
{
    if (p->result)
        return steal_ptr (&p->result);
    p->ask->status = p->status;
    p->ask->is_unserved = p->is_unserved;
    if (p->failure)
        return mur_propagate (err, steal_ptr (&p->failure)), NULL;
    if (! p->error)
        return fail_dead (s, err), NULL;
    if (p->ask->error) {
        *p->ask->error = steal_ptr (&p->error);
        return NULL;
    }
    _cleanup_free_ char *words = mcp_error_words (p->error);
    mur_fail (err, E_MCP_005, "server %s refused %s: %s", s->setup.name, p->ask->method, words);
    return NULL;
}

json_t *
server_request (struct mcp_server *s, struct server_ask *ask, struct mur_error **err)
{
    json_t *result = NULL;
    uint64_t listener = cancel_add (ask->cancel, wake_waiter, s);
    pthread_mutex_lock (&s->lock);
    struct pending p = { .id = s->next_id++, .heard_ms = clock_monotonic_ms (), .ask = ask };
    if (s->state != SERVER_UP) {
        fail_dead (s, err);
    } else {
        p.next = s->pending;
        s->pending = &p;
        send_request (s, &p);
        if (wait_for_answer (s, &p, err))
            result = take_answer (s, &p, err);
        unlink_pending (s, &p);
    }
    pthread_mutex_unlock (&s->lock);
    cancel_remove (ask->cancel, listener);
    if (ask->progress_count)
        *ask->progress_count = p.progress_count;
    json_decref (ask->params);
    json_decref (p.result);
    json_decref (p.error);
    json_decref (p.said);
    while (p.step_count)
        free (p.steps[--p.step_count].message);
    mur_error_freep (&p.failure);
    mcp_message_clear (&p.question);
    return result;
}
