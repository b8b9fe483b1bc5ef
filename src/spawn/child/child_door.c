/* SPDX-License-Identifier: Apache-2.0 */
#include "spawn/child/child_door.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "spawn/child/door_ask.h"

#include <string.h>

#define DELIVERY_MS   30000
#define FIRST_WAIT_MS 100
#define LAST_WAIT_MS  2000
#define QUERY_MS      5000

/* A question to a child's door. */
static struct door_question
question (struct http_client *http, struct mur_child *child, const char *id, const char *method,
          json_t *params, struct cancel *cancel)
{
    return (struct door_question){ .http = http,
                                   .url = mur_child_url (child),
                                   .token = mur_child_door_token (child),
                                   .id = id,
                                   .method = method,
                                   .params = params,
                                   .cancel = cancel };
}

/* --- handing the task over --- */

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
    _cleanup_json_ json_t *params = door_message_params (delegation_id, task);
    struct door_question q = question (http, child, delegation_id, "SendMessage", params, cancel);
    q.traceparent = traceparent;
    uint64_t end_ms = clock_monotonic_ms () + DELIVERY_MS;
    for (uint64_t wait_ms = FIRST_WAIT_MS;; wait_ms *= 2) {
        uint64_t now_ms = clock_monotonic_ms ();
        _cleanup_error_ struct mur_error *fault = NULL;
        q.timeout_ms = end_ms > now_ms ? end_ms - now_ms : 1;
        _cleanup_json_ json_t *answer = door_ask (&q, &fault);
        if (answer)
            return read_taken (answer, task_id, err);
        wait_ms = wait_ms < LAST_WAIT_MS ? wait_ms : LAST_WAIT_MS;
        bool is_over =
            mur_child_has_exited (child, NULL) || clock_monotonic_ms () + wait_ms >= end_ms;
        if (is_over || ! cancel_sleep (cancel, wait_ms))
            return mur_fail (err, E_RUN_007, "its task was not handed over: %s", fault->message);
    }
}

/* --- asking after it --- */

json_t *
child_door_task (struct http_client *http, struct mur_child *child, const char *task_id,
                 struct cancel *cancel)
{
    _cleanup_json_ json_t *params = json_object ();
    json_set_string (params, "id", task_id);
    struct door_question q = question (http, child, task_id, "GetTask", params, cancel);
    q.timeout_ms = QUERY_MS;
    _cleanup_json_ json_t *answer = door_ask (&q, NULL);
    return json_incref (json_object_get (answer, "result"));
}

bool
child_door_answer (struct http_client *http, struct mur_child *child, json_t *params,
                   struct cancel *cancel)
{
    struct door_question q = question (http, child, "answer", "SendMessage", params, cancel);
    q.timeout_ms = QUERY_MS;
    _cleanup_json_ json_t *answer = door_ask (&q, NULL);
    return json_object_get (answer, "result") != NULL;
}
