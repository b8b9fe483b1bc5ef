/* SPDX-License-Identifier: Apache-2.0
 *
 * Tasks as handles (io.modelcontextprotocol/tasks): a client that knows them is answered at once
 * and asks after what it began, a task of the capsule's agent or the call of a tool.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "door/tasks/registry.h"
#include "session/served/held_tasks.h"
#include "session/served/served_internal.h"

#include <string.h>

/* --- asking after one --- */

static bool
may_ask (const struct mcp_call *call, struct mcp_answer *answer)
{
    return ask_takes_handles (call) || mcp_refuse_taskless (answer, call->request->method->name);
}

/* NULL with *answer refused: it is not the client's. */
static json_t *
find (struct served *v, const struct mcp_call *call, enum task_state *state,
      struct mcp_answer *answer)
{
    const struct caller caller = ask_caller (v, call);
    json_t *task = registry_task_json (v->s->registry, &caller, call->name, NULL, state);
    if (! task)
        mcp_refuse (answer, MCP_INVALID_PARAMS, "there is no task %.80s", call->name);
    return task;
}

void
served_tasks_get (void *ctx, const struct mcp_call *call, struct mcp_answer *answer)
{
    struct served *v = ctx;
    enum task_state state;
    if (! may_ask (call, answer) || held_task_get (v, call, answer))
        return;
    _cleanup_json_ json_t *task = find (v, call, &state, answer);
    if (! task)
        return;
    json_t *o = ask_handle (task, state);
    if (state == TASK_INPUT_REQUIRED)
        json_object_set_new (o, "inputRequests", ask_input_requests (task));
    if (str_eq (ask_status (state), "completed"))
        json_object_set_new (o, "result", ask_outcome (task, NULL));
    answer->result = o;
}

void
served_tasks_update (void *ctx, const struct mcp_call *call, struct mcp_answer *answer)
{
    struct served *v = ctx;
    enum task_state state;
    const struct caller caller = ask_caller (v, call);
    const json_t *responses = json_object_get (call->params, "inputResponses");
    if (! may_ask (call, answer))
        return;
    if (! json_is_object (responses)) {
        mcp_refuse (answer, MCP_INVALID_PARAMS, "inputResponses must be an object");
        return;
    }
    if (held_task_update (v, call, responses, answer))
        return;
    _cleanup_json_ json_t *task = find (v, call, &state, answer);
    if (! task)
        return;
    _cleanup_free_ char *text =
        state == TASK_INPUT_REQUIRED ? ask_responses_text (task, responses) : NULL;
    if (text) {
        struct route_result routed = { 0 };
        const struct message_intake intake = {
            .task_id = call->name, .text = text, .part_kinds = "t", .origin = ORIGIN_EVENT
        };
        registry_route (v->s->registry, &caller, &intake, &routed);
        route_result_clear (&routed);
    }
    answer->result = json_object ();
}

void
served_tasks_cancel (void *ctx, const struct mcp_call *call, struct mcp_answer *answer)
{
    struct served *v = ctx;
    enum task_state state;
    const struct caller caller = ask_caller (v, call);
    if (! may_ask (call, answer) || held_task_cancel (v, call, answer))
        return;
    _cleanup_json_ json_t *task = find (v, call, &state, answer);
    json_t *left = NULL;
    if (! task)
        return;
    registry_cancel (v->s->registry, &caller, call->name, &left, &state);
    json_decref (left);
    answer->result = json_object ();
}
