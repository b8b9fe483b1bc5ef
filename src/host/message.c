/* SPDX-License-Identifier: Apache-2.0 */
#include "host/message.h"

/* send: func (peer-url: string, message: message) -> result<task-result, string> */
static bool
send_message (void *ctx, struct arena *arena, const struct value *args, size_t arg_count _unused_,
              struct value *result, struct mur_error **err)
{
    const struct message_host *host = ctx;
    if (! host)
        return mur_fail (err, E_RUN_001, "no message sending here");
    struct peer_message message = { 0 };
    message.message_id = value_text (value_field (&args[1], "message-id"), NULL);
    message.context_id = value_text (value_field (&args[1], "context-id"), NULL);
    message.text = value_text (value_field (&args[1], "text"), &message.text_len);
    struct peer_task task = { 0 };
    const char *refusal = NULL;
    if (host->send (host->ctx, value_text (&args[0], NULL), &message, arena, &task, &refusal)) {
        struct value_field fields[] = {
            { "task-id", value_string (arena, task.task_id) },
            { "context-id", value_string (arena, task.context_id) },
            { "state", value_string (arena, task.state) },
        };
        struct value record = value_record (arena, fields, ARRAY_LEN (fields));
        *result = value_ok (arena, &record);
    } else {
        struct value text = value_string (arena, refusal ? refusal : "not sent");
        *result = value_err (arena, &text);
    }
    return true;
}

static const struct host_function functions[] = {
    { "send", send_message },
};

const struct host_interface host_message = {
    "murmur:message/send@0.1.0",
    functions,
    ARRAY_LEN (functions),
};
