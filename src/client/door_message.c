/* SPDX-License-Identifier: Apache-2.0 */
#include "client/door_message.h"

#include "base/ids.h"
#include "door/tasks/question.h"

#include <string.h>

const json_t *
door_message_question (const json_t *status)
{
    size_t i;
    const json_t *part;
    json_array_foreach (json_object_get (json_object_get (status, "message"), "parts"), i, part)
    {
        const json_t *data = json_object_get (part, "data");
        if (question_id (data))
            return data;
    }
    return NULL;
}

json_t *
door_message (const char *text, size_t len, const char *context_id, const char *task_id)
{
    json_t *part = json_object ();
    json_set_string_n (part, "text", text, len);
    json_t *parts = json_array ();
    json_array_append_new (parts, part);
    json_t *message = json_object ();
    json_set_string (message, "messageId", id_new ("msg_").text);
    json_set_string (message, "role", "ROLE_USER");
    if (context_id)
        json_set_string (message, "contextId", context_id);
    if (task_id)
        json_set_string (message, "taskId", task_id);
    json_object_set_new (message, "parts", parts);
    json_t *params = json_object ();
    json_object_set_new (params, "message", message);
    return params;
}

json_t *
door_message_answer (const char *task_id, const json_t *question, const char *answer)
{
    json_t *params = door_message (answer, strlen (answer), NULL, task_id);
    json_t *message = json_object_get (params, "message");
    json_t *part = json_array_get (json_object_get (message, "parts"), 0);
    json_object_clear (part);
    json_object_set_new (
        part, "data",
        json_pack ("{s:s, s:s}", "question_id", question_id (question), "answer", answer));
    return params;
}
