/* SPDX-License-Identifier: Apache-2.0 */
#include "session/servers/call_server.h"

#include "base/alloc.h"
#include "base/diag.h"
#include "base/json_write.h"
#include "door/tasks/intake.h"
#include "mcp/input.h"
#include "mcp/media.h"
#include "mcp/result.h"
#include "session/servers/follow.h"
#include "session/servers/server_request.h"
#include "session/servers/staged_server.h"
#include "session/state/loop_lock.h"
#include "session/state/person.h"
#include "session/state/running_task.h"

#include <string.h>

#define RESULT_MAX    ((size_t)262144) /* bytes the model gets of one result */
#define QUESTIONS_MAX 10               /* rounds of input of one call */
#define LOGINS_MAX    3                /* times a person is asked to log in, of one call */

struct one_call {
    struct session *session;
    struct running_task *task; /* NULL: nobody to ask */
    struct staged_server *server;
    const struct server_offer *offer;
    struct cancel *cancel;
    const struct call *call;
    struct call_outcome *out;
};

/* --- arguments --- */

/* Models write null or nothing for what they leave out: that is not there. */
static json_t *
own_arguments (const struct server_offer *o, const json_t *input)
{
    const json_t *properties = json_object_get (o->schema, "properties");
    json_t *arguments = json_object ();
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)input, key, value)
    {
        const json_t *type = json_object_get (json_object_get (properties, key), "type");
        bool takes_null = str_eq (json_string_value (type), "null") || json_is_array (type);
        if (! json_is_null (value) || takes_null || strv_contains (&o->required, key))
            json_object_set (arguments, key, value);
    }
    return arguments;
}

/* --- input of a person --- */

static json_t *
typed_answer (const char *text, const json_t *schema)
{
    const char *type = json_get_string (schema, "type");
    json_t *value = str_eq (type, "string") ? NULL : json_loads (text, JSON_DECODE_ANY, NULL);
    return value ? value : json_string_lossy (text, strlen (text));
}

/* What was left out is what the schema proposes. */
static json_t *
with_defaults (json_t *content, const json_t *schema)
{
    const char *key;
    json_t *property;
    json_object_foreach (json_object_get (schema, "properties"), key, property)
    {
        json_t *proposed = json_object_get (property, "default");
        if (proposed && ! json_object_get (content, key))
            json_object_set (content, key, proposed);
    }
    return content;
}

/* What a person wrote as the content of an elicitation: JSON, or the one value that is asked for.
 */
static json_t *
answer_content (const char *reply, const json_t *schema)
{
    const json_t *properties = json_object_get (schema, "properties");
    json_t *whole = json_loads (reply, 0, NULL);
    if (json_is_object (whole) || json_object_size (properties) != 1) {
        if (! json_is_object (whole)) {
            json_decref (whole);
            whole = json_object ();
        }
        return whole;
    }
    json_decref (whole);
    void *first = json_object_iter ((json_t *)(uintptr_t)properties);
    json_t *content = json_object ();
    json_object_set_new (content, json_object_iter_key (first),
                         typed_answer (reply, json_object_iter_value (first)));
    return content;
}

/* Asks whoever sits at the client whose call this is. */
static json_t *
ask_client (const struct one_call *c, const json_t *requests)
{
    return c->task->client->ask (c->task->client->ctx, requests, UINT64_MAX);
}

/* True when the call is a client's that can be asked for all of <kinds>. */
static bool
has_client (const struct one_call *c, unsigned kinds)
{
    return c->task && c->task->client && kinds && ! (kinds & ~c->task->client->takes);
}

/* Asks the client for one thing. A new result, or NULL. */
static json_t *
ask_client_for (const struct one_call *c, const char *method, const json_t *params)
{
    _cleanup_json_ json_t *none = json_object ();
    _cleanup_json_ json_t *requests =
        json_pack ("{s:{s:s, s:O}}", "q", "method", method, "params", params ? params : none);
    _cleanup_json_ json_t *responses = ask_client (c, requests);
    return json_incref (json_object_get (responses, "q"));
}

/* Asks the person behind the task; NULL: nobody answers. */
static json_t *
ask_operator (struct one_call *c, const json_t *params)
{
    if (has_client (c, MCP_INPUT_ELICITATION)) {
        json_t *response = ask_client_for (c, "elicitation/create", params);
        return response ? response : json_pack ("{s:s}", "action", "cancel");
    }
    const struct opt_u64 *timeout = &c->session->policy->lifecycle.input_timeout_secs;
    const json_t *schema = json_object_get (params, "requestedSchema");
    const char *message = json_get_string (params, "message");
    if (! c->task || ! message)
        return NULL;
    _cleanup_free_ char *wanted = schema ? json_text (schema, JSON_TEXT_SORTED) : x_strdup ("{}");
    _cleanup_free_ char *prompt =
        x_asprintf ("The server %s asks: %s\n\nAnswer with JSON for %s, or with the word decline.",
                    c->server->name, message, wanted);
    const struct question asked = { .text = prompt };
    _cleanup_ (question_reply_clear) struct question_reply reply = { 0 };
    if (! registry_ask (c->session->registry, c->task->task, &asked,
                        timeout->is_set ? timeout->value * 1000 : UINT64_MAX, &reply))
        return json_pack ("{s:s}", "action", "cancel");
    if (strcasecmp (reply.text, "decline") == 0 || strcasecmp (reply.text, "cancel") == 0)
        return json_pack ("{s:s}", "action", "decline");
    return json_pack ("{s:s, s:o}", "action", "accept", "content",
                      with_defaults (answer_content (reply.text, schema), schema));
}

/* --- asking --- */

static bool
is_operator_asked (const struct one_call *c)
{
    return c->server->artifact->entry->mcp->ask.value == MCP_ASK_OPERATOR;
}

/* What it may be asked for in this call: of what the manifest allows, what its client takes. */
static unsigned
withheld (const struct one_call *c)
{
    unsigned takes = c->task && c->task->client ? c->task->client->takes : 0;
    return c->call->is_served ? ~takes : ~(unsigned)MCP_INPUT_ELICITATION;
}

/* An older server's question. */
static json_t *
answer_question (void *ctx, const char *method, const json_t *params)
{
    struct one_call *c = ctx;
    unsigned kind = mcp_input_of (method);
    if (kind == MCP_INPUT_ELICITATION)
        return ask_operator (c, params);
    return has_client (c, kind) ? ask_client_for (c, method, params) : NULL;
}

/* What lets a server ask for it; for a kind that is none, what lets it ask at all. */
static const char *
how_to_allow (unsigned kind, bool is_allowed)
{
    if (kind == MCP_INPUT_SAMPLING)
        return is_allowed ? "only a client of mur mcp serve that declares sampling can be asked"
                          : "exports.mcp.sampling: true lets it ask the model of its client";
    if (kind == MCP_INPUT_ROOTS)
        return is_allowed ? "only a client of mur mcp serve that declares roots can be asked"
                          : "exports.mcp.roots: true lets it ask for the folders of its client";
    return "mcp.ask: operator lets the task wait for a person";
}

static json_t *
refuse_input (struct one_call *c, const json_t *request, struct mur_error **err)
{
    const char *method = json_get_string (request, "method");
    const char *message = json_get_string (json_object_get (request, "params"), "message");
    unsigned kind = mcp_input_of (method);
    bool is_allowed = c->server->asks & kind;
    if (is_allowed && kind != MCP_INPUT_ELICITATION && c->call->is_served && ! has_client (c, kind))
        c->out->lacking |= kind;
    mur_fail (err, E_MCP_005, "server %s asks for input (%.80s%s%.200s), and none is given",
              c->server->name, method ? method : "?", message ? ": " : "", message ? message : "");
    return mur_hint (err, "%s", how_to_allow (kind, is_allowed)), NULL;
}

/* What a modern server wants to know before it goes on; NULL: it is not told. */
static json_t *
input_responses (struct one_call *c, const json_t *requests, struct mur_error **err)
{
    unsigned kinds = mcp_inputs_of (requests);
    bool is_allowed = ! (kinds & ~c->server->asks);
    json_t *responses = NULL;
    const char *key;
    json_t *request;
    if (is_allowed && has_client (c, kinds) && (responses = ask_client (c, requests)))
        return responses;
    responses = json_object ();
    json_object_foreach ((json_t *)(uintptr_t)requests, key, request)
    {
        unsigned kind = mcp_input_of (json_get_string (request, "method"));
        bool may_ask =
            kind == MCP_INPUT_ELICITATION && is_operator_asked (c) && ! has_client (c, kind);
        json_t *answer = may_ask ? ask_operator (c, json_object_get (request, "params")) : NULL;
        if (! answer) {
            json_decref (responses);
            return refuse_input (c, request, err);
        }
        json_object_set_new (responses, key, answer);
    }
    return responses;
}

static json_t *
answer_task (void *ctx, const json_t *requests, struct mur_error **err)
{
    return input_responses (ctx, requests, err);
}

/* A task in place of a result: what comes of it. */
static json_t *
follow (struct one_call *c, json_t *created, uint64_t deadline_ms, struct call_outcome *out,
        struct mur_error **err)
{
    _cleanup_json_ json_t *taken = created;
    struct cancel *own = c->cancel ? NULL : cancel_new ();
    struct server_follow f = { .idle_ms = deadline_ms,
                               .cap_ms = deadline_ms * SERVER_CAP_FACTOR,
                               .cancel = c->cancel ? c->cancel : own,
                               .input = answer_task,
                               .ctx = c };
    json_t *result = server_follow (c->server->process, taken, &f, err);
    out->progress_count += f.news;
    if (own)
        cancel_unref (own);
    return result;
}

static json_t *
ask_once (struct one_call *c, const json_t *params, struct call_outcome *out,
          struct mur_error **err)
{
    uint64_t deadline_ms = c->server->artifact->grant->deadline_seconds * 1000, progress = 0;
    _cleanup_json_ json_t *error = NULL;
    struct server_ask ask = { .idle_ms = deadline_ms,
                              .cap_ms = deadline_ms * SERVER_CAP_FACTOR,
                              .cancel = c->cancel,
                              .answer = answer_question,
                              .ctx = c,
                              .withholds = withheld (c),
                              .error = &error,
                              .progress_count = &progress,
                              .listener = c->call->listener,
                              .is_repeatable = c->offer->is_read_only };
    json_t *result = server_call (c->server->process, &ask, params, err);
    out->progress_count += progress;
    if (error) {
        _cleanup_free_ char *words = mcp_error_words (error);
        mur_fail (err, E_MCP_005, "server %s refused the call of %s: %s", c->server->name,
                  c->offer->tool, words);
        if (c->call->is_served)
            out->mcp_error = json_incref (error);
    }
    return server_is_task (result) ? follow (c, result, deadline_ms, out, err) : result;
}

static json_t *
call_params (const struct one_call *c, const json_t *arguments)
{
    json_t *params = json_object ();
    json_set_string (params, "name", c->offer->tool);
    json_object_set (params, "arguments", (json_t *)(uintptr_t)arguments);
    return params;
}

/* Until it is complete, or asks for what it is not given. */
static json_t *
ask_all (struct one_call *c, const json_t *arguments, struct call_outcome *out,
         struct mur_error **err)
{
    _cleanup_json_ json_t *params = call_params (c, arguments);
    for (unsigned round = 0; round < QUESTIONS_MAX; round++) {
        _cleanup_json_ json_t *result = ask_once (c, params, out, err);
        const char *type = json_get_string (result, "resultType");
        if (! result || ! type || strcmp (type, "complete") == 0)
            return json_incref (result);
        if (strcmp (type, "input_required") != 0)
            return mur_fail (err, E_MCP_005, "server %s gave a result of the type %.40s",
                             c->server->name, type),
                   NULL;
        json_t *responses = input_responses (c, json_object_get (result, "inputRequests"), err);
        json_t *state = json_object_get (result, "requestState");
        if (! responses)
            return NULL;
        json_decref (params);
        params = call_params (c, arguments);
        json_object_set_new (params, "inputResponses", responses);
        if (state)
            json_object_set (params, "requestState", state);
    }
    return mur_fail (err, E_MCP_005, "server %s asked for input %d times in one call",
                     c->server->name, QUESTIONS_MAX),
           NULL;
}

/* A login that is missing, not a key: there is something a person can do about it. */
static bool
wants_login (const struct one_call *c, const struct mur_error *why)
{
    const struct artifact_entry *e = c->server->artifact->entry;
    return why && why->code == E_MCP_009 && c->task && is_operator_asked (c) && ! e->gateway &&
           ! cancel_is_raised (c->cancel);
}

/* True when the person says that it is there now. */
static bool
ask_for_login (struct one_call *c, const struct mur_error *why)
{
    const struct opt_u64 *timeout = &c->session->policy->lifecycle.input_timeout_secs;
    _cleanup_free_ char *prompt =
        x_asprintf ("%s%s%s\n\nAnswer done when that is done, and the call is made again; any "
                    "other answer gives it up.",
                    why->message, why->hint ? "\n" : "", why->hint ? why->hint : "");
    const struct question asked = { .text = prompt };
    _cleanup_ (question_reply_clear) struct question_reply reply = { 0 };
    return person_ask (c->session, c->task, &asked,
                       timeout->is_set ? timeout->value * 1000 : UINT64_MAX, &reply) &&
           strcasecmp (reply.text, "done") == 0;
}

static json_t *
open_and_ask (struct one_call *c, const json_t *arguments, struct call_outcome *out,
              struct mur_error **err)
{
    if (! server_open (c->server->process, c->cancel, err) ||
        ! server_may_call (c->server->process, c->offer->tool, err))
        return NULL;
    return ask_all (c, arguments, out, err);
}

/* Once more after each login, some times. */
static json_t *
ask_logged_in (struct one_call *c, const json_t *arguments, struct call_outcome *out,
               struct mur_error **err)
{
    for (unsigned tries = 0;; tries++) {
        struct mur_error *why = NULL;
        json_t *result = open_and_ask (c, arguments, out, &why);
        if (! wants_login (c, why) || tries == LOGINS_MAX || ! ask_for_login (c, why))
            return why ? mur_propagate (err, why), NULL : result;
        mur_error_free (why);
    }
}

/* --- the result --- */

/* In the records, where the session's commands can read it. */
static char *
keep (void *ctx, const char *mime, const void *data, size_t len)
{
    struct one_call *c = ctx;
    _cleanup_free_ char *dir = x_asprintf ("mcp/%s/kept", c->server->name);
    char *path = x_asprintf ("%s/%llu.%s", dir, (unsigned long long)++c->server->kept,
                             mcp_media_ending (mime));
    if (fs_make_dirs (c->session->places.records, dir, 0700, true, NULL) &&
        fs_write (c->session->places.records, path, data, len, 0600, true, NULL)) {
        char *whole = x_asprintf ("%s/%s", c->session->places.dirs.records_path, path);
        free (path);
        return whole;
    }
    free (path);
    return NULL;
}

static void
take_result (struct one_call *c, const json_t *result, const char *name, struct call_outcome *out)
{
    const struct mcp_result_reader reader = { keep, c };
    _cleanup_buf_ struct buf text = { 0 };
    bool is_good = mcp_result_read (result, &reader, &text);
    if (text.len > RESULT_MAX) {
        _cleanup_free_ char *where = keep (c, "text/plain", text.data, text.len);
        size_t whole = text.len;
        buf_truncate (&text, utf8_cut (text.data, text.len, RESULT_MAX));
        buf_printf (&text, "\n[cut: %zu of %zu bytes%s%s]", text.len, whole,
                    where ? "; all of it is in " : "", where ? where : "");
        out->is_truncated = true;
    }
    outcome_set_result (out, name, is_good ? TOOL_PASSED : TOOL_FAILED, text.data, text.len);
    if (c->call->is_served)
        out->mcp_result = json_incref ((json_t *)(uintptr_t)result);
    out->state_effect = c->offer->is_read_only ? x_strdup ("read") : NULL;
}

/* --- the whole --- */

/* It holds words of the server, so it is fenced like a result. */
static void
take_error (const struct mur_error *err, const char *name, struct call_outcome *out)
{
    outcome_set_error (out, "%s: %s%s%s", diag_code_name (err->code), err->message,
                       err->hint ? "; " : "", err->hint ? err->hint : "");
    outcome_set_text (out, "tool", name, out->runtime_error, strlen (out->runtime_error));
}

static const struct server_offer *
find_offer (const struct staged_server *v, const char *name)
{
    for (size_t i = 0; i < v->offer_count; i++)
        if (strcmp (v->offers[i].name, name) == 0)
            return &v->offers[i];
    return NULL;
}

void
servers_call (struct session *s, struct running_task *task, const struct tool_entry *tool,
              const struct call *call, struct call_outcome *out)
{
    struct staged_server *v = tool->artifact->server;
    struct one_call c = { .session = s,
                          .task = task,
                          .server = v,
                          .offer = find_offer (v, tool->name),
                          .call = call,
                          .out = out,
                          .cancel = call->stop ? call->stop
                                    : task     ? task->cancel
                                               : NULL };
    _cleanup_error_ struct mur_error *err = NULL;
    _cleanup_json_ json_t *result = NULL;
    out->server = v->artifact->full_name;
    if (! json_is_object (call->input)) {
        outcome_set_error (out, "%s: the input must be a JSON object", tool->name);
        return;
    }
    _cleanup_json_ json_t *arguments = own_arguments (c.offer, call->input);
    loop_lock_release (&s->loop_lock);
    atomic_fetch_add (&v->calls, 1);
    result = ask_logged_in (&c, arguments, out, &err);
    bool is_last = atomic_fetch_sub (&v->calls, 1) == 1;
    if (is_last && v->artifact->entry->mcp->keep.value == MCP_KEEP_CALL)
        server_end (v->process);
    loop_lock_take (&s->loop_lock);
    if (result)
        take_result (&c, result, tool->name, out);
    else if (cancel_is_raised (c.cancel)) {
        outcome_set_error (out, "tool %s was stopped: the task was cancelled", tool->name);
        out->is_canceled = true;
    } else if (err)
        take_error (err, tool->name, out);
    else
        outcome_set_error (out, "server %s gave no result", v->name);
}
