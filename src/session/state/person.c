/* SPDX-License-Identifier: Apache-2.0 */
#include "session/state/person.h"

#include "door/tasks/intake.h"
#include "mcp/elicitation.h"
#include "mcp/input.h"
#include "session/state/running_task.h"
#include "session/state/session.h"

#define KEY "answer"

/* A client that only lends its model or names its folders has nobody who answers. */
static const struct asked_client *
client_of (const struct running_task *t)
{
    return t->client && (t->client->takes & MCP_INPUT_ELICITATION) ? t->client : NULL;
}

bool
person_may_approve (struct session *s, const struct running_task *t)
{
    const struct asked_client *client = client_of (t);
    return client ? client->is_operator : registry_can_ask (s->registry, t->task);
}

static bool
ask_client (const struct asked_client *client, const struct question *question, uint64_t timeout_ms,
            struct question_reply *reply)
{
    const json_t *answers = json_object_get (question->data, "answers");
    _cleanup_json_ json_t *requests =
        json_pack ("{s:{s:s, s:o}}", KEY, "method", "elicitation/create", "params",
                   mcp_elicitation_params (question->text, answers));
    _cleanup_json_ json_t *responses = client->ask (client->ctx, requests, timeout_ms);
    *reply = (struct question_reply){ .has_timed_out = ! responses };
    reply->text = mcp_elicitation_answer (json_object_get (responses, KEY), answers);
    return reply->text != NULL;
}

bool
person_ask (struct session *s, const struct running_task *t, const struct question *question,
            uint64_t timeout_ms, struct question_reply *reply)
{
    const struct asked_client *client = client_of (t);
    return client ? ask_client (client, question, timeout_ms, reply)
                  : registry_ask (s->registry, t->task, question, timeout_ms, reply);
}
