/* SPDX-License-Identifier: Apache-2.0
 *
 * Tasks of a session, as calls of its door.
 */
#include "base/alloc.h"
#include "client/door_client.h"
#include "client/door_message.h"
#include "door/tasks/question.h"
#include "lib/session_state.h"

#include <string.h>

#define CALL_MS 30000

static json_t *
call (struct mur_session *s, const char *method, const json_t *params, struct mur_error **err)
{
    if (! session_is_ours (s)) {
        mur_fail (err, E_IO_003, "%s%s", s ? s->ready.id : "there is no session",
                  s ? " belongs to the process this one was forked from" : "");
        return NULL;
    }
    if (! *s->ready.address) {
        mur_fail (err, E_RUN_023, "%s is a script: it has no door and takes no tasks", s->ready.id);
        return NULL;
    }
    const char *ending = mur_session_status (s);
    if (ending) {
        mur_fail (err, E_RUN_022, "%s has ended (%s): it takes no tasks", s->ready.id, ending);
        return NULL;
    }
    struct door_call c = { s->ready.address, session_token (s, "operator"), method, params,
                           CALL_MS };
    int code;
    return door_call (s->client, &c, &code, err);
}

/* Sends a message without waiting for its task. Owned. */
static json_t *
send (struct mur_session *s, json_t *params, struct mur_error **err)
{
    json_t *configuration = json_object ();
    json_set_bool (configuration, "returnImmediately", true);
    json_object_set_new (params, "configuration", configuration);
    _cleanup_json_ json_t *result = call (s, "SendMessage", params, err);
    json_t *task = json_object_get (result, "task");
    const json_t *status = json_object_get (task, "status");
    if (str_eq (json_get_string (status, "state"), "TASK_STATE_REJECTED")) {
        const json_t *parts = json_object_get (json_object_get (status, "message"), "parts");
        const char *why = json_get_string (json_array_get (parts, 0), "text");
        mur_fail (err, E_RUN_040, "%s", why ? why : "the task was rejected");
        mur_hint (err, "lifecycle.task_acceptance says which tasks it takes, lifecycle.queue_depth "
                       "how many may wait");
        return NULL;
    }
    return json_incref (task);
}

char *
mur_session_send (struct mur_session *s, const char *text, size_t len, const char *context_id,
                  struct mur_error **err)
{
    if (! text || ! utf8_is_valid (text, len)) {
        mur_fail (err, E_IO_003, text ? "the task is not UTF-8" : "there is no text of a task");
        return NULL;
    }
    _cleanup_json_ json_t *params = door_message (text, len, context_id, NULL);
    _cleanup_json_ json_t *task = send (s, params, err);
    const char *id = json_get_string (task, "id");
    return id ? x_strdup (id) : NULL;
}

/* What it asks: the params that answer it, owned. NULL: nobody waits, or it is no answer. */
static json_t *
answer_params (const json_t *task, const char *task_id, const char *text, struct mur_error **err)
{
    const json_t *status = json_object_get (task, "status");
    if (! str_eq (json_get_string (status, "state"), "TASK_STATE_INPUT_REQUIRED")) {
        mur_fail (err, E_RUN_040, "%s asks nothing (any more)", task_id);
        return NULL;
    }
    const json_t *question = door_message_question (status);
    if (! question)
        return door_message (text, strlen (text), NULL, task_id);
    _cleanup_free_ char *why = NULL;
    const char *answer = question_answer (question, text, NULL, &why);
    if (answer)
        return door_message_answer (task_id, question, answer);
    mur_fail (err, E_RUN_040, "%s", why);
    return NULL;
}

/* NULL: none is named. */
static json_t *
id_params (const char *task_id, struct mur_error **err)
{
    if (! task_id) {
        mur_fail (err, E_IO_003, "no task is named");
        return NULL;
    }
    json_t *params = json_object ();
    json_set_string (params, "id", task_id);
    return params;
}

bool
mur_session_answer (struct mur_session *s, const char *task_id, const char *text,
                    struct mur_error **err)
{
    _cleanup_json_ json_t *which = id_params (task_id, err);
    _cleanup_json_ json_t *task = which ? call (s, "GetTask", which, err) : NULL;
    if (! task)
        return false;
    if (! text || ! utf8_is_valid (text, strlen (text)))
        return mur_fail (err, E_IO_003, text ? "the answer is not UTF-8" : "there is no answer");
    _cleanup_json_ json_t *params = answer_params (task, task_id, text, err);
    _cleanup_json_ json_t *taken = params ? send (s, params, err) : NULL;
    return taken != NULL;
}

bool
mur_session_cancel (struct mur_session *s, const char *task_id, struct mur_error **err)
{
    _cleanup_json_ json_t *which = id_params (task_id, err);
    _cleanup_json_ json_t *task = which ? call (s, "CancelTask", which, err) : NULL;
    return task != NULL;
}
