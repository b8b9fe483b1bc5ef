/* SPDX-License-Identifier: Apache-2.0
 *
 * A question of the capsule's task on its way through MCP: what the client is asked, and what of
 * its answer goes back to the task.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/digest.h"
#include "mcp/elicitation.h"
#include "mcp/request_state.h"
#include "session/served/served_internal.h"

#include <string.h>

#define INPUT_KEY "answer"
#define ANSWER_MS ((uint64_t)600 * 1000) /* a legacy client's person is waited for so long */

/* --- the question --- */

static const json_t *
parts_of (const json_t *task)
{
    const json_t *artifacts = json_object_get (task, "artifacts");
    return json_object_get (json_array_get (artifacts, 0), "parts");
}

/* The answers a structured question takes; NULL: any text. */
static const json_t *
answers_of (const json_t *task)
{
    size_t i;
    json_t *part;
    json_array_foreach (parts_of (task), i, part)
    {
        const json_t *answers = json_object_get (json_object_get (part, "data"), "answers");
        if (json_array_size (answers))
            return answers;
    }
    return NULL;
}

static const char *
text_of (const json_t *task)
{
    const char *text = json_get_string (json_array_get (parts_of (task), 0), "text");
    return text ? text : "What should it go on with?";
}

static json_t *
elicitation (const json_t *task)
{
    return mcp_elicitation_params (text_of (task), answers_of (task));
}

json_t *
ask_input_requests (const json_t *task)
{
    return json_pack ("{s:{s:s, s:o}}", INPUT_KEY, "method", "elicitation/create", "params",
                      elicitation (task));
}

/* --- the answer --- */

char *
ask_answer_text (const json_t *task, const json_t *response)
{
    return mcp_elicitation_answer (response, answers_of (task));
}

char *
ask_responses_text (const json_t *task, const json_t *responses)
{
    return ask_answer_text (task, json_object_get (responses, INPUT_KEY));
}

/* --- a modern client: it calls again --- */

static char *
binding_of (const struct mcp_call *call)
{
    char hash[SHA256_HEX_LEN + 1];
    _cleanup_free_ char *arguments = json_text (call->arguments, JSON_TEXT_SORTED);
    sha256_hex (arguments, strlen (arguments), hash);
    return x_asprintf ("tools/call %s %s %s", call->name, hash,
                       call->request->principal ? call->request->principal : "");
}

void
ask_want_input (const struct served *v, const struct mcp_call *call, const struct ask_wanted *w,
                struct mcp_answer *answer)
{
    _cleanup_free_ char *binding = binding_of (call);
    _cleanup_free_ char *state =
        mcp_state_make (v->state_key, w->subject, binding, clock_unix_ms () + w->life_ms);
    answer->result = json_pack ("{s:s, s:o, s:s}", "resultType", "input_required", "inputRequests",
                                w->requests, "requestState", state);
}

char *
ask_resumed_task (const struct served *v, const struct mcp_call *call, struct mcp_answer *answer)
{
    const char *state = json_get_string (call->params, "requestState");
    _cleanup_free_ char *binding = binding_of (call);
    char *id = state ? mcp_state_read (v->state_key, state, binding, clock_unix_ms ()) : NULL;
    if (! id)
        mcp_refuse (answer, MCP_INVALID_PARAMS,
                    "requestState is not one that was given for this call, or it has expired");
    return id;
}

/* --- a legacy client: it is asked --- */

json_t *
ask_legacy_client (const struct mcp_call *call, const json_t *task)
{
    if (call->request->revision->era != MCP_LEGACY || ! call->sink || ! call->sink->ask ||
        ! mcp_client_can (call->request, "elicitation"))
        return NULL;
    _cleanup_json_ json_t *params = elicitation (task);
    return call->sink->ask (call->sink->ctx, "elicitation/create", params, ANSWER_MS);
}
