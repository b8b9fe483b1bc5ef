/* SPDX-License-Identifier: Apache-2.0 */
#include "door/tasks/task_json.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/json.h"
#include "door/tasks/task_state.h"
#include "door/tasks/tasks.h"

#include <string.h>

void
task_view_clear (struct task_view *v)
{
    free (v->status_text);
    free (v->response);
    free (v->prompt);
    json_decref (v->question);
    json_decref (v->metadata);
}

static json_t *
text_parts (const char *text)
{
    json_t *part = json_object (), *parts = json_array ();
    json_set_string (part, "text", text);
    json_set_string (part, "mediaType", "text/plain");
    json_array_append_new (parts, part);
    return parts;
}

/* {artifactId, name, parts: [text]}. */
static json_t *
artifact_json (const char *name, const char *text)
{
    json_t *artifact = json_object ();
    json_set_string (artifact, "artifactId", name);
    json_set_string (artifact, "name", name);
    json_object_set_new (artifact, "parts", text_parts (text));
    return artifact;
}

json_t *
agent_message_json (const char *message_id, const char *context_id, const char *task_id,
                    const char *text)
{
    json_t *message = json_object ();
    json_set_string (message, "messageId", message_id);
    if (context_id)
        json_set_string (message, "contextId", context_id);
    if (task_id)
        json_set_string (message, "taskId", task_id);
    json_set_string (message, "role", "ROLE_AGENT");
    json_object_set_new (message, "parts", text_parts (text));
    return message;
}

/* The structure of what is asked, for programs that show it. */
static void
add_question (json_t *holder, const struct task_view *v)
{
    if (v->state != TASK_INPUT_REQUIRED || ! v->question)
        return;
    json_t *part = json_object ();
    json_object_set (part, "data", v->question);
    json_set_string (part, "mediaType", "application/json");
    json_array_append_new (json_object_get (holder, "parts"), part);
}

static json_t *
status_json (const struct task_view *v, const char *message_id, const char *text)
{
    json_t *status = json_object ();
    json_set_string (status, "state", task_state_wire (v->state));
    if (text) {
        json_t *message = agent_message_json (message_id, v->context_id, v->id, text);
        add_question (message, v);
        json_object_set_new (status, "message", message);
    }
    char timestamp[25];
    clock_rfc3339 (v->timestamp_ms, timestamp);
    json_set_string (status, "timestamp", timestamp);
    return status;
}

json_t *
task_view_status (const struct task_view *v)
{
    _cleanup_free_ char *message_id = x_asprintf ("msg_%s_status", v->id);
    bool asks = v->state == TASK_INPUT_REQUIRED && v->question;
    return status_json (v, message_id,
                        asks                                ? v->prompt
                        : task_state_is_terminal (v->state) ? v->status_text
                                                            : NULL);
}

json_t *
task_view_said (const struct task_view *v, const char *text)
{
    return status_json (v, id_new ("msg_").text, text);
}

json_t *
task_view_response (const struct task_view *v)
{
    bool has_one = v->state == TASK_COMPLETED && v->response && *v->response;
    return has_one ? artifact_json ("response", v->response) : NULL;
}

json_t *
task_view_metadata (const struct task_view *v)
{
    if (! v->metadata)
        return NULL;
    json_t *metadata = json_object ();
    json_object_set (metadata, "murmur", v->metadata);
    return metadata;
}

static json_t *
prompt_artifact (const struct task_view *v)
{
    json_t *artifact = artifact_json ("prompt", v->prompt);
    add_question (artifact, v);
    return artifact;
}

static json_t *
artifacts_of (const struct task_view *v)
{
    json_t *artifacts = json_array (), *response = task_view_response (v);
    if (v->state == TASK_INPUT_REQUIRED && v->prompt)
        json_array_append_new (artifacts, prompt_artifact (v));
    else if (response)
        json_array_append_new (artifacts, response);
    return artifacts;
}

static json_t *
view_json (const struct task_view *v)
{
    json_t *task = json_object ();
    json_set_string (task, "id", v->id);
    json_set_string (task, "contextId", v->context_id);
    json_object_set_new (task, "status", task_view_status (v));
    json_t *metadata = task_view_metadata (v);
    if (metadata && task_state_is_terminal (v->state))
        json_object_set_new (task, "metadata", metadata);
    else
        json_decref (metadata);
    return task;
}

json_t *
task_view_json (const struct task_view *v, bool with_artifacts)
{
    json_t *task = view_json (v);
    _cleanup_json_ json_t *artifacts = artifacts_of (v);
    if (with_artifacts && json_array_size (artifacts))
        json_object_set (task, "artifacts", artifacts);
    return task;
}

json_t *
task_view_listed_json (const struct task_view *v, bool with_artifacts)
{
    json_t *task = view_json (v);
    if (with_artifacts)
        json_object_set_new (task, "artifacts", artifacts_of (v));
    return task;
}

char *
task_page_token (uint64_t revision, const char *task_id)
{
    _cleanup_free_ char *text = x_asprintf ("%llu:%s", (unsigned long long)revision, task_id);
    return base64url_encode (text, strlen (text));
}

bool
task_page_token_read (const char *token, uint64_t *revision, char **task_id)
{
    size_t len;
    _cleanup_free_ unsigned char *bytes = base64url_decode (token, strlen (token), &len);
    if (! bytes)
        return false;
    _cleanup_free_ char *text = x_strndup ((const char *)bytes, len);
    char *end;
    if (text[0] < '0' || text[0] > '9')
        return false;
    *revision = strtoull (text, &end, 10);
    if (*end != ':' || ! id_is_valid (end + 1, "tsk_"))
        return false;
    *task_id = x_strdup (end + 1);
    return true;
}
