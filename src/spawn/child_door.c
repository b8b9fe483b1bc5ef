/* SPDX-License-Identifier: Apache-2.0
 *
 * Asking a child's door. See child_door.h.
 */
#include "spawn/child_door.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/secret.h"

#include <string.h>

#define DELIVERY_MS   30000
#define FIRST_WAIT_MS 100
#define LAST_WAIT_MS  2000
#define QUERY_MS      5000
#define ANSWER_LIMIT  ((size_t)64 << 20) /* a task's answer may be in it */

struct question {
    struct http_client *http;
    struct mur_child *child;
    const char *id; /* of the request */
    const char *method;
    json_t *params;
    const char *traceparent; /* NULL: none */
    uint64_t timeout_ms;
    struct cancel *cancel;
};

static char *
question_text (const struct question *q)
{
    _cleanup_json_ json_t *o = json_object ();
    json_set_string (o, "jsonrpc", "2.0");
    json_set_string (o, "id", q->id);
    json_set_string (o, "method", q->method);
    json_object_set (o, "params", q->params);
    return json_text (o, JSON_TEXT_ORDERED);
}

/* One attempt: the answer's object, owned; NULL when there was none of JSON with status 2xx. */
static json_t *
ask (const struct question *q, struct mur_error **err)
{
    const char *token = mur_child_door_token (q->child), *url = mur_child_url (q->child);
    _cleanup_free_ char *address = x_asprintf ("%s/", url);
    _cleanup_free_ char *body = question_text (q);
    char *bearer = token ? x_asprintf ("Bearer %s", token) : NULL;
    struct http_header headers[4] = {
        { "content-type", "application/json", strlen ("application/json") },
        { "a2a-version", "1.0", strlen ("1.0") },
    };
    size_t header_count = 2;
    if (bearer)
        headers[header_count++] =
            (struct http_header){ "authorization", bearer, strlen (bearer) };
    if (q->traceparent)
        headers[header_count++] =
            (struct http_header){ "traceparent", q->traceparent, strlen (q->traceparent) };
    const struct http_fetch fetch = {
        .request = { .method = "POST",
                     .url = address,
                     .headers = headers,
                     .header_count = header_count,
                     .body_kind = HTTP_BODY_BUFFER,
                     .body = body,
                     .body_len = strlen (body),
                     .connect_timeout_ms = q->timeout_ms },
        .limit_bytes = ANSWER_LIMIT,
        .total_timeout_ms = q->timeout_ms,
        .cancel = q->cancel,
    };
    _cleanup_http_response_ struct http_response r = { 0 };
    bool is_answered = http_fetch (q->http, &fetch, &r, NULL, err);
    if (bearer)
        secret_wipe (bearer, strlen (bearer));
    free (bearer);
    if (! is_answered)
        return NULL;
    if (r.status / 100 != 2)
        return mur_fail (err, E_RUN_007, "its door at %s answered HTTP %d", url, r.status), NULL;
    json_t *answer = json_loadb (r.body.data ? r.body.data : "", r.body.len, 0, NULL);
    if (! json_is_object (answer)) {
        json_decref (answer);
        return mur_fail (err, E_RUN_007, "its door at %s answered no JSON", url), NULL;
    }
    return answer;
}

/* --- handing the task over -------------------------------------------------------------------- */

static json_t *
message_params (const char *delegation_id, const char *task)
{
    _cleanup_free_ char *message_id = x_asprintf ("msg_%s", delegation_id);
    json_t *part = json_object (), *parts = json_array (), *message = json_object ();
    json_set_string (part, "text", task);
    json_set_string (part, "mediaType", "text/plain");
    json_array_append_new (parts, part);
    json_set_string (message, "messageId", message_id);
    json_set_string (message, "role", "ROLE_USER");
    json_object_set_new (message, "parts", parts);
    json_t *how = json_object (), *params = json_object ();
    json_set_bool (how, "returnImmediately", true);
    json_object_set_new (params, "message", message);
    json_object_set_new (params, "configuration", how);
    return params;
}

/* The id of the task in an answer, or what stands there in its place. */
static bool
read_taken (const json_t *answer, char **task_id, struct mur_error **err)
{
    const json_t *fault = json_object_get (answer, "error");
    const json_t *task = json_object_get (json_object_get (answer, "result"), "task");
    const char *id = json_get_string (task, "id");
    const char *state = json_get_string (json_object_get (task, "status"), "state");
    if (fault) {
        const char *said = json_get_string (fault, "message");
        return mur_fail (err, E_RUN_007, "its door refused the task: %s",
                         said ? said : "no reason");
    }
    if (! id || ! *id)
        return mur_fail (err, E_RUN_007, "its door answered without a task that has an id");
    if (str_eq (state, "TASK_STATE_REJECTED"))
        return mur_fail (err, E_RUN_007, "it rejected the task");
    *task_id = x_strdup (id);
    return true;
}

bool
child_door_send (struct http_client *http, struct mur_child *child, const char *delegation_id,
                 const char *task, const char *traceparent, struct cancel *cancel, char **task_id,
                 struct mur_error **err)
{
    if (! *mur_child_url (child))
        return mur_fail (err, E_RUN_007, "it bound no address, so it can be handed no task");
    _cleanup_json_ json_t *params = message_params (delegation_id, task);
    struct question q = { .http = http,
                          .child = child,
                          .id = delegation_id,
                          .method = "SendMessage",
                          .params = params,
                          .traceparent = traceparent,
                          .cancel = cancel };
    uint64_t end_ms = clock_monotonic_ms () + DELIVERY_MS;
    for (uint64_t wait_ms = FIRST_WAIT_MS;; wait_ms *= 2) {
        uint64_t now_ms = clock_monotonic_ms ();
        _cleanup_error_ struct mur_error *fault = NULL;
        q.timeout_ms = end_ms > now_ms ? end_ms - now_ms : 1;
        _cleanup_json_ json_t *answer = ask (&q, &fault);
        if (answer)
            return read_taken (answer, task_id, err);
        wait_ms = wait_ms < LAST_WAIT_MS ? wait_ms : LAST_WAIT_MS;
        bool is_over =
            mur_child_has_exited (child, NULL) || clock_monotonic_ms () + wait_ms >= end_ms;
        if (is_over || ! cancel_sleep (cancel, wait_ms))
            return mur_fail (err, E_RUN_007, "its task was not handed over: %s", fault->message);
    }
}

/* --- asking after it -------------------------------------------------------------------------- */

json_t *
child_door_task (struct http_client *http, struct mur_child *child, const char *task_id,
                 struct cancel *cancel)
{
    _cleanup_json_ json_t *params = json_object ();
    json_set_string (params, "id", task_id);
    const struct question q = { .http = http,
                                .child = child,
                                .id = task_id,
                                .method = "GetTask",
                                .params = params,
                                .timeout_ms = QUERY_MS,
                                .cancel = cancel };
    _cleanup_json_ json_t *answer = ask (&q, NULL);
    return json_incref (json_object_get (answer, "result"));
}
