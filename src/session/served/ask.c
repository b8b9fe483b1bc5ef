/* SPDX-License-Identifier: Apache-2.0
 *
 * The capsule as one tool: a message becomes a task of its own agent, as one that came to the door
 * would, and the call waits for what comes of it.
 */
#include "base/alloc.h"
#include "door/tasks/registry.h"
#include "session/served/served_internal.h"

#include <pthread.h>
#include <string.h>

#define STATE_LIFE_MS ((uint64_t)24 * 3600 * 1000)

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

/* The task of that conversation that waits for an answer. Owned; NULL: none does. */
static char *
waiting_task (struct served *v, const struct caller *caller, const char *context_id)
{
    struct list_query query = {
        .context_id = context_id, .page_size = 1, .has_state = true, .state = TASK_INPUT_REQUIRED
    };
    _cleanup_json_ json_t *list = registry_list_json (v->s->registry, caller, &query);
    const json_t *task = json_array_get (json_object_get (list, "tasks"), 0);
    const char *id = json_get_string (task, "id");
    return id ? x_strdup (id) : NULL;
}

/* Hands a message to a task, or begins one (NULL). False: *answer says why. */
static bool
route (struct ask *a, const char *task_id, const char *context_id, const char *text, char **id,
       struct mcp_answer *answer)
{
    struct route_result routed = { 0 };
    const struct message_intake intake = { .task_id = task_id,
                                           .context_id = context_id,
                                           .text = text,
                                           .part_kinds = "t",
                                           .origin = ORIGIN_EVENT };
    registry_route (a->served->s->registry, &a->caller, &intake, &routed);
    bool is_taken = routed.outcome == ROUTE_NEW || routed.outcome == ROUTE_CONTINUED;
    if (is_taken)
        *id = x_strdup (task_id ? task_id : routed.id);
    else if (routed.outcome == ROUTE_NO_ANSWER)
        set_failure (answer, routed.why ? routed.why : "that answers nothing that is open");
    else if (task_id)
        set_failure (answer, "the task does not wait for an answer any more");
    else
        set_failure (answer, "the capsule takes no task now: it is busy, try again later");
    route_result_clear (&routed);
    return is_taken;
}

/* --- what a call is about --- */

/* A new message. Owned id, or NULL with *answer. */
static char *
begin (struct ask *a, const struct mcp_call *call, struct mcp_answer *answer)
{
    const char *message = json_get_string (call->arguments, "message");
    const char *context_id = json_get_string (call->arguments, "context_id");
    char *id = NULL;
    if (! message || ! message[strspn (message, " \t\r\n")]) {
        set_failure (answer, "message is required: what is asked, as text");
        return NULL;
    }
    if (context_id && ! is_known_context (a->served, &a->caller, context_id)) {
        set_failure (answer, "there is no conversation with that context_id here: leave context_id "
                             "out to begin a new one");
        return NULL;
    }
    _cleanup_free_ char *waits =
        context_id ? waiting_task (a->served, &a->caller, context_id) : NULL;
    return route (a, waits, context_id, message, &id, answer) ? id : NULL;
}

/* The same call once more, with what was asked. */
static char *
resume (struct ask *a, const struct mcp_call *call, struct mcp_answer *answer)
{
    enum task_state state = TASK_WORKING;
    _cleanup_free_ char *id = ask_resumed_task (a->served, call, answer);
    _cleanup_json_ json_t *task =
        id ? registry_task_json (a->served->s->registry, &a->caller, id, NULL, &state) : NULL;
    char *same = NULL;
    if (! id)
        return NULL;
    if (! task) {
        set_failure (answer, "the task is not there any more");
        return NULL;
    }
    _cleanup_free_ char *text =
        ask_responses_text (task, json_object_get (call->params, "inputResponses"));
    if (state != TASK_INPUT_REQUIRED || ! text) /* answered elsewhere, or asked once more */
        return steal_ptr (&id);
    return route (a, id, NULL, text, &same, answer) ? same : NULL;
}

/* --- how it goes on --- */

/* The client's person answers, where it has one that can be asked while the call runs. */
static bool
ask_person (struct ask *a, const struct mcp_call *call, const json_t *task)
{
    _cleanup_mcp_answer_ struct mcp_answer unused = { 0 };
    _cleanup_json_ json_t *response = ask_legacy_client (call, task);
    _cleanup_free_ char *text = response ? ask_answer_text (task, response) : NULL;
    _cleanup_free_ char *same = NULL;
    return text && route (a, a->task_id, NULL, text, &same, &unused);
}

static void
want_input (struct served *v, const struct mcp_call *call, const json_t *task,
            struct mcp_answer *answer)
{
    if (call->request->revision->era == MCP_MODERN &&
        mcp_client_can (call->request, "elicitation")) {
        const struct ask_wanted wanted = { json_get_string (task, "id"), ask_input_requests (task),
                                           STATE_LIFE_MS };
        ask_want_input (v, call, &wanted, answer);
        return;
    }
    _cleanup_free_ char *hint =
        x_asprintf ("It waits for this answer: call %s again with it as message and with "
                    "context_id %s.",
                    v->exported->agent->name, json_get_string (task, "contextId"));
    answer->result = ask_outcome (task, hint);
}

/* Until it is over, or wants what is not given while the call runs. */
static void
settle (struct ask *a, const struct mcp_call *call, struct mcp_answer *answer)
{
    for (;;) {
        _cleanup_json_ json_t *task = wait_settled (a, call->cancel);
        if (! task) {
            set_failure (answer, "the session ended before there was an answer");
            return;
        }
        if (! str_eq (ask_state (task), "input-required")) {
            answer->result = ask_outcome (task, NULL);
            return;
        }
        if (! ask_person (a, call, task)) {
            if (cancel_is_raised (call->cancel))
                cancel_task (a);
            want_input (a->served, call, task, answer);
            return;
        }
    }
}

/* The client asks after it. */
static void
hand_out (struct ask *a, struct mcp_answer *answer)
{
    enum task_state state;
    _cleanup_json_ json_t *task =
        registry_task_json (a->served->s->registry, &a->caller, a->task_id, NULL, &state);
    if (! task) {
        set_failure (answer, "the task is not there any more");
        return;
    }
    answer->result = ask_handle (task, state);
    json_set_string (answer->result, "resultType", "task");
}

void
served_ask (struct served *v, const struct mcp_call *call, struct mcp_answer *answer)
{
    struct ask a = { .served = v, .caller = ask_caller (v, call) };
    bool is_resumed = json_object_get (call->params, "requestState") &&
                      call->request->revision->era == MCP_MODERN;
    _cleanup_free_ char *id = is_resumed ? resume (&a, call, answer) : begin (&a, call, answer);
    if (! id)
        return;
    a.task_id = id;
    if (ask_takes_handles (call))
        hand_out (&a, answer);
    else
        settle (&a, call, answer);
}
