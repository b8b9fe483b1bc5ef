/* SPDX-License-Identifier: Apache-2.0 */
#include "session/servers/follow.h"

#include "base/clock.h"
#include "session/servers/server_internal.h"
#include "session/servers/server_request.h"

#include <string.h>

#define POLL_MS     1000 /* where the server does not say */
#define POLL_MIN_MS 50
#define POLL_MAX_MS 10000
#define ASK_MS      30000 /* for one answer about it */
#define CANCEL_MS   2000

struct task {
    struct mcp_server *s;
    struct server_follow *f;
    char id[513];
    uint64_t heard_ms, began_ms;
    json_t *last; /* what was said of it last: owned */
    bool is_over; /* there, too */
};

bool
server_is_task (const json_t *result)
{
    return str_eq (json_get_string (result, "resultType"), "task");
}

static json_t *
ask (struct task *t, const char *method, json_t *responses, uint64_t timeout_ms, bool is_free,
     struct mur_error **err)
{
    json_t *params = json_pack ("{s:s}", "taskId", t->id);
    if (responses)
        json_object_set_new (params, "inputResponses", responses);
    struct server_ask a = { .method = method,
                            .params = mcp_client_params (&t->s->client, params, 0),
                            .idle_ms = timeout_ms,
                            .cap_ms = timeout_ms,
                            .cancel = is_free ? NULL : t->f->cancel,
                            .is_repeatable = true };
    return server_request (t->s, &a, err);
}

static bool
take_id (struct task *t, const json_t *created, struct mur_error **err)
{
    const char *id = json_get_string (created, "taskId");
    size_t len = id ? strlen (id) : 0;
    if (! len || len >= sizeof t->id)
        return mur_fail (err, E_MCP_005, "server %s began a task without a taskId",
                         t->s->setup.name);
    memcpy (t->id, id, len + 1);
    return true;
}

static uint64_t
poll_ms (const json_t *said)
{
    uint64_t ms = POLL_MS;
    (void)json_get_u64 (said, "pollIntervalMs", &ms);
    return ms < POLL_MIN_MS ? POLL_MIN_MS : ms > POLL_MAX_MS ? POLL_MAX_MS : ms;
}

/* Something new is a sign of life. */
static void
hear (struct task *t, const json_t *said)
{
    static const char *const members[] = { "status", "statusMessage", "lastUpdatedAt" };
    bool is_new = false;
    for (size_t i = 0; i < ARRAY_LEN (members); i++) {
        const json_t *was = json_object_get (t->last, members[i]);
        const json_t *is = json_object_get (said, members[i]);
        is_new = is_new || ! was != ! is || (was && ! json_equal (was, is));
    }
    if (is_new) {
        t->heard_ms = clock_monotonic_ms ();
        t->f->news++;
    }
    json_decref (t->last);
    t->last = json_incref ((json_t *)(uintptr_t)said);
}

static bool
is_late (const struct task *t, struct mur_error **err)
{
    uint64_t now = clock_monotonic_ms ();
    bool is_idle = now - t->heard_ms >= t->f->idle_ms, is_over = now - t->began_ms >= t->f->cap_ms;
    if (! is_idle && ! is_over)
        return false;
    mur_fail (err, E_MCP_002, "server %s did not end its task within %llu s%s", t->s->setup.name,
              (unsigned long long)(is_over ? t->f->cap_ms : t->f->idle_ms) / 1000,
              is_over ? " in spite of its progress" : "");
    return true;
}

/* Its questions are answered; meanwhile the clock does not run. */
static bool
answer (struct task *t, const json_t *said, struct mur_error **err)
{
    const json_t *requests = json_object_get (said, "inputRequests");
    uint64_t began = clock_monotonic_ms ();
    json_t *responses = NULL;
    if (t->f->input)
        responses = t->f->input (t->f->ctx, requests, err);
    else
        mur_fail (err, E_MCP_005, "server %s asks for input, and none is given", t->s->setup.name);
    if (! responses)
        return false;
    t->heard_ms += clock_monotonic_ms () - began;
    _cleanup_json_ json_t *taken = ask (t, "tasks/update", responses, ASK_MS, false, err);
    return taken != NULL;
}

/* True when it is over: *result, or *err. */
static bool
judge (struct task *t, const json_t *said, json_t **result, struct mur_error **err)
{
    const char *status = json_get_string (said, "status");
    json_t *end = json_object_get (said, "result");
    const json_t *error = json_object_get (said, "error");
    if (str_eq (status, "working"))
        return false;
    if (str_eq (status, "input_required"))
        return ! answer (t, said, err);
    t->is_over = true;
    if (str_eq (status, "completed") && json_is_object (end)) {
        *result = json_incref (end);
        return true;
    }
    _cleanup_free_ char *words = json_is_object (error) ? mcp_error_words (error) : NULL;
    mur_fail (err, E_MCP_005, "server %s: its task %s%s%s", t->s->setup.name,
              str_eq (status, "failed")      ? "failed"
              : str_eq (status, "cancelled") ? "was cancelled there"
                                             : "ended without a result",
              words ? ": " : "", words ? words : "");
    return true;
}

/* Nobody waits for it any more. */
static void
give_up (struct task *t)
{
    _cleanup_json_ json_t *taken = ask (t, "tasks/cancel", NULL, CANCEL_MS, true, NULL);
}

json_t *
server_follow (struct mcp_server *s, const json_t *created, struct server_follow *f,
               struct mur_error **err)
{
    uint64_t now = clock_monotonic_ms ();
    struct task t = { .s = s, .f = f, .heard_ms = now, .began_ms = now };
    json_t *result = NULL;
    bool is_settled = false;
    if (! take_id (&t, created, err))
        return NULL;
    t.last = json_incref ((json_t *)(uintptr_t)created);
    while (! is_settled && cancel_sleep (f->cancel, poll_ms (t.last)) && ! is_late (&t, err)) {
        _cleanup_json_ json_t *said = ask (&t, "tasks/get", NULL, ASK_MS, false, err);
        if (said)
            hear (&t, said);
        is_settled = ! said || judge (&t, said, &result, err);
    }
    if (! result && ! t.is_over)
        give_up (&t);
    json_decref (t.last);
    return result;
}
