/* SPDX-License-Identifier: Apache-2.0
 *
 * What a client is told of a task of the capsule's agent: its outcome as a tool's result, or a
 * handle it asks after.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "door/callers/auth.h"
#include "session/served/served_internal.h"

#include <string.h>

#define POLL_MS 1000

struct caller
ask_caller (const struct served *v, const struct mcp_call *call)
{
    const char *principal = call->request->principal;
    if (! principal && v->is_authenticated)
        principal = AUTH_OPERATOR;
    return (struct caller){ .credential = principal };
}

/* --- its outcome --- */

/* The texts of a task's artifacts, or of its status message. */
static char *
answer_text (const json_t *task)
{
    struct buf out = { 0 };
    size_t i, k;
    json_t *artifact, *part;
    json_array_foreach (json_object_get (task, "artifacts"), i, artifact)
        json_array_foreach (json_object_get (artifact, "parts"), k, part)
            buf_puts (&out, json_get_string (part, "text") ? json_get_string (part, "text") : "");
    const json_t *message = json_object_get (json_object_get (task, "status"), "message");
    if (! out.len)
        json_array_foreach (json_object_get (message, "parts"), k, part)
            buf_puts (&out, json_get_string (part, "text") ? json_get_string (part, "text") : "");
    return buf_steal (&out);
}

const char *
ask_state (const json_t *task)
{
    const char *wire = json_get_string (json_object_get (task, "status"), "state");
    for (enum task_state state = TASK_SUBMITTED; state <= TASK_REJECTED; state++)
        if (str_eq (wire, task_state_wire (state)) || str_eq (wire, task_state_word (state)))
            return task_state_word (state);
    return "failed";
}

json_t *
ask_outcome (const json_t *task, const char *hint)
{
    const char *state = ask_state (task);
    _cleanup_free_ char *said = answer_text (task);
    _cleanup_free_ char *text =
        hint ? x_asprintf ("%s%s%s", said, said[0] ? "\n\n" : "", hint) : x_strdup (said);
    json_t *structure = json_object ();
    json_set_string (structure, "state", state);
    json_set_string (structure, "answer", text);
    json_set_string (structure, "task_id", json_get_string (task, "id"));
    json_set_string (structure, "context_id", json_get_string (task, "contextId"));
    _cleanup_free_ char *whole = json_text (structure, JSON_TEXT_ORDERED);
    bool is_good = str_eq (state, "completed") || str_eq (state, "input-required");
    json_t *result = mcp_text_result (whole, strlen (whole), ! is_good);
    json_object_set_new (result, "structuredContent", structure);
    return result;
}

/* --- a handle --- */

static const struct {
    enum task_state state;
    const char *status;
} statuses[] = {
    { TASK_SUBMITTED, "working" },   { TASK_WORKING, "working" },
    { TASK_COMPLETED, "completed" }, { TASK_INPUT_REQUIRED, "input_required" },
    { TASK_FAILED, "completed" }, /* a failure of the agent's is a result; `failed` is JSON-RPC's */
    { TASK_REJECTED, "completed" },  { TASK_CANCELED, "cancelled" },
};

const char *
ask_status (enum task_state state)
{
    for (size_t i = 0; i < ARRAY_LEN (statuses); i++)
        if (statuses[i].state == state)
            return statuses[i].status;
    return "working";
}

json_t *
ask_handle_of (const char *id, const char *status, const char *updated_at)
{
    json_t *o = json_pack ("{s:s, s:s, s:n, s:i}", "taskId", id, "status", status, "ttlMs",
                           "pollIntervalMs", POLL_MS);
    char created[25];
    clock_rfc3339 (id_time_ms (id), created);
    json_set_string (o, "createdAt", created);
    json_set_string (o, "lastUpdatedAt", updated_at);
    return o;
}

/* What is said of a task, whoever asks. */
json_t *
ask_handle (const json_t *task, enum task_state state)
{
    const json_t *status = json_object_get (task, "status");
    return ask_handle_of (json_get_string (task, "id"), ask_status (state),
                          json_get_string (status, "timestamp"));
}

bool
ask_takes_handles (const struct mcp_call *call)
{
    return call->request->revision->era == MCP_MODERN &&
           mcp_client_can (call->request, MCP_EXT_TASKS);
}
