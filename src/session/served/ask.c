/* SPDX-License-Identifier: Apache-2.0
 *
 * The capsule as one tool: a message becomes a task of its own agent, as one that came to the door
 * would, and the call waits for what comes of it.
 */
#include "base/alloc.h"
#include "door/callers/auth.h"
#include "door/tasks/registry.h"
#include "session/served/served_internal.h"

#include <pthread.h>
#include <string.h>

static const char input_schema[] =
    "{\"type\":\"object\",\"properties\":{\"message\":{\"type\":\"string\",\"description\":\"What "
    "is asked.\"},\"context_id\":{\"type\":\"string\",\"description\":\"The context_id of an "
    "earlier answer: goes on with that conversation. Leave it out to begin a new one.\"}},"
    "\"required\":[\"message\"],\"additionalProperties\":false}";
static const char output_schema[] =
    "{\"type\":\"object\",\"properties\":{\"state\":{\"type\":\"string\"},\"answer\":{\"type\":"
    "\"string\"},\"task_id\":{\"type\":\"string\"},\"context_id\":{\"type\":\"string\"}},"
    "\"required\":[\"state\",\"answer\",\"task_id\",\"context_id\"]}";

json_t *
served_ask_tool (const struct served *v)
{
    json_t *tool = json_object ();
    json_set_string (tool, "name", v->exported->agent->name);
    json_set_string (tool, "description", v->exported->agent->description);
    json_object_set_new (tool, "inputSchema", json_loads (input_schema, 0, NULL));
    json_object_set_new (tool, "outputSchema", json_loads (output_schema, 0, NULL));
    return tool;
}

/* --- waiting for the task --- */

struct wait {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    json_t *task; /* as it was settled; owned */
    bool is_given_up;
};

static void
on_settled (void *ctx, json_t *task)
{
    struct wait *w = ctx;
    pthread_mutex_lock (&w->lock);
    w->task = task;
    pthread_cond_signal (&w->changed);
    pthread_mutex_unlock (&w->lock);
}

struct ask {
    struct served *served;
    struct caller caller;
    const char *task_id;
};

/* The client wants no answer: the task stops, and settles by that. */
static void
cancel_task (void *ctx)
{
    struct ask *a = ctx;
    json_t *task = NULL;
    enum task_state state;
    registry_cancel (a->served->s->registry, &a->caller, a->task_id, &task, &state);
    json_decref (task);
}

static json_t *
wait_settled (struct ask *a, struct cancel *cancel)
{
    struct wait w = { .task = NULL };
    pthread_mutex_init (&w.lock, NULL);
    pthread_cond_init (&w.changed, NULL);
    uint64_t listener = cancel_add (cancel, cancel_task, a);
    if (registry_when_settled (a->served->s->registry, &a->caller, a->task_id, on_settled, &w)) {
        pthread_mutex_lock (&w.lock);
        while (! w.task)
            pthread_cond_wait (&w.changed, &w.lock);
        pthread_mutex_unlock (&w.lock);
    }
    cancel_remove (cancel, listener);
    pthread_cond_destroy (&w.changed);
    pthread_mutex_destroy (&w.lock);
    return w.task;
}

/* --- what came of it --- */

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

static const char *
state_word (const json_t *task)
{
    const char *wire = json_get_string (json_object_get (task, "status"), "state");
    for (enum task_state state = TASK_SUBMITTED; state <= TASK_REJECTED; state++)
        if (str_eq (wire, task_state_wire (state)) || str_eq (wire, task_state_word (state)))
            return task_state_word (state);
    return "failed";
}

static void
set_outcome (const json_t *task, const char *hint, struct mcp_answer *answer)
{
    const char *state = state_word (task);
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
    answer->result = mcp_text_result (whole, strlen (whole), ! is_good);
    json_object_set_new (answer->result, "structuredContent", structure);
}

static void
set_failure (struct mcp_answer *answer, const char *text)
{
    answer->result = mcp_text_result (text, strlen (text), true);
}

static bool
is_known_context (struct served *v, const struct caller *caller, const char *context_id)
{
    struct list_query query = { .context_id = context_id, .page_size = 1 };
    _cleanup_json_ json_t *list = registry_list_json (v->s->registry, caller, &query);
    return json_array_size (json_object_get (list, "tasks")) > 0;
}

void
served_ask (struct served *v, const struct mcp_call *call, struct mcp_answer *answer)
{
    const char *message = json_get_string (call->arguments, "message");
    const char *context_id = json_get_string (call->arguments, "context_id");
    const char *principal = call->request->principal;
    if (! principal && v->is_authenticated)
        principal = AUTH_OPERATOR;
    struct ask a = { .served = v, .caller = { .credential = principal } };
    struct route_result routed = { 0 };
    if (! message || ! message[strspn (message, " \t\r\n")]) {
        set_failure (answer, "message is required: what is asked, as text");
        return;
    }
    if (context_id && ! is_known_context (v, &a.caller, context_id)) {
        set_failure (answer, "there is no conversation with that context_id here: leave context_id "
                             "out to begin a new one");
        return;
    }
    const struct message_intake intake = {
        .context_id = context_id, .text = message, .part_kinds = "t", .origin = ORIGIN_EVENT
    };
    registry_route (v->s->registry, &a.caller, &intake, &routed);
    if (routed.outcome == ROUTE_NEW) {
        a.task_id = routed.id;
        _cleanup_json_ json_t *task = wait_settled (&a, call->cancel);
        if (task)
            set_outcome (task, NULL, answer);
        else
            set_failure (answer, "the session ended before there was an answer");
    } else {
        set_failure (answer, "the capsule takes no task now: it is busy, try again later");
    }
    route_result_clear (&routed);
}
