/* SPDX-License-Identifier: Apache-2.0
 *
 * The A2A task object and its parts (spec/door.md 6.2), made from what the registry knows of a
 * task.
 */
#pragma once

#include "base/ids.h"
#include "door/tasks/task_state.h"

#include <jansson.h>
#include <stdint.h>

struct task_view {
    char *id;         /* borrowed from the task */
    char *context_id; /* borrowed */
    enum task_state state;
    uint64_t timestamp_ms;
    char *status_text; /* of an ended task */
    char *response;    /* of a completed one; NULL or "" = none */
    char *prompt;      /* of an input-required one */
    json_t *question;  /* structured data beside the prompt; NULL: none */
    json_t *metadata;  /* what goes under "murmur"; NULL = none */
};

/* Frees what the view owns. */
void task_view_clear (struct task_view *v);

/* The whole object, as GetTask answers (<with_artifacts>). */
json_t *task_view_json (const struct task_view *v, bool with_artifacts);
/* One of ListTasks: `artifacts` only when asked for, then always there. */
json_t *task_view_listed_json (const struct task_view *v, bool with_artifacts);
/* {state, timestamp, message?}. */
json_t *task_view_status (const struct task_view *v);
/* A status of the present state saying <text>, with a message id of its own. */
json_t *task_view_said (const struct task_view *v, const char *text);
/* The `response` artifact, or NULL. */
json_t *task_view_response (const struct task_view *v);
/* {"murmur": ...}, or NULL. */
json_t *task_view_metadata (const struct task_view *v);

/* A text message of the agent. <context_id>, <task_id> may be NULL. */
json_t *agent_message_json (const char *message_id, const char *context_id, const char *task_id,
                            const char *text);

/* Unpadded base64url of "<revision>:<task id>". Owned. */
char *task_page_token (uint64_t revision, const char *task_id);
/* False when it does not decode. <task_id> is owned. */
bool task_page_token_read (const char *token, uint64_t *revision, char **task_id);
