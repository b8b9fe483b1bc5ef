/* SPDX-License-Identifier: Apache-2.0
 *
 * Any agent that speaks the Agent Client Protocol (version 1, JSON-RPC on standard input and
 * output) as a harness: initialize, a session, one prompt, and what it asks meanwhile.
 *
 * Members of inference.driver.config: args, env, gateway_env, auth_method, mode, allow, deny. What
 * the agent asks permission for is judged by the manifest's rules (rules.c) and never allowed
 * silently; each answer is a note in the trace.
 */
#include "acp.h"
#include "murmur_harness.h"

#include <stdlib.h>
#include <string.h>

static const char *const config_members[] = { "args", "env",   "gateway_env", "auth_method",
                                              "mode", "allow", "deny",        NULL };

/* The requests of ours that are answered, by id. */
enum {
    ASKED_INITIALIZE = 1,
    ASKED_AUTHENTICATE,
    ASKED_SESSION,
    ASKED_MODE,
    ASKED_PROMPT,
};

/* One run; the launch's texts live as long as the instance. */
static struct {
    struct mur_launch launch;
    struct mur_bridge bridge;
    char *session_id;
    int awaited;                  /* the one request that is open; 0: none */
    struct mur_text answer, part; /* the whole turn's text, and what came since the last call */
    bool is_replaying;            /* a loaded session says again what was said */
    bool takes_http;              /* MCP servers by address */
    bool loads_sessions;
} run;

void
mur_process_describe (struct mur_harness *harness)
{
    static const char *const version_args[] = { "--version", NULL };
    /* claude-code-acp, Gemini CLI, opencode, codex-acp */
    static const char *const tested[] = { "0.16.2", "0.61.0", "1.18.33", "0.16.0", NULL };
    *harness = (struct mur_harness){
        .harness = "acp",
        .binary = "acp-agent",
        .version_args = version_args,
        .tested_versions = tested,
        .interrupt = MUR_INTERRUPT_STDIN,
        .streams_text = true,
    };
}

/* --- launch --- */

/* "{gateway_url}" and "{gateway_key}" in a text of the config: for programs that take their
 * provider's address from an argument or a whole configuration in a variable. */
static char *
with_gateway (const char *text, const struct mur_gateway *gateway)
{
    const struct {
        const char *mark, *value;
    } marks[] = { { "{gateway_url}", gateway->base_url },
                  { "{gateway_key}", gateway->placeholder } };
    struct mur_text out = { 0 };
    while (*text != '\0') {
        size_t i = 0;
        while (i < 2 && (marks[i].value == NULL ||
                         strncmp (text, marks[i].mark, strlen (marks[i].mark)) != 0))
            i++;
        if (i < 2) {
            mur_text_puts (&out, marks[i].value);
            text += strlen (marks[i].mark);
        } else {
            mur_text_add (&out, text++, 1);
        }
    }
    return out.data != NULL ? out.data : mur_format ("%s", "");
}

/* False: no list of texts. */
static bool
add_arguments (struct mur_plan *plan, const struct mur_json *config)
{
    struct mur_gateway gateway = mur_harness_gateway (config);
    mur_node list = mur_json_get (config, 0, "args");
    bool is_fine = mur_json_kind (config, list) == MUR_JSON_ABSENT ||
                   mur_json_kind (config, list) == MUR_JSON_ARRAY;
    for (mur_node n = mur_json_first (config, list); is_fine && n >= 0;
         n = mur_json_next (config, n)) {
        char *word = mur_json_text (config, n);
        is_fine = word != NULL;
        if (is_fine)
            mur_plan_arg (plan, with_gateway (word, &gateway));
    }
    if (! is_fine)
        mur_plan_refuse (plan, "inference.driver.config.args: a list of texts is wanted");
    return is_fine;
}

/* Agents that leave MCP servers alone in a folder nobody said they trust. Inside walls the folder
 * is the capsule's; config.env may say otherwise. */
static void
add_trust (struct mur_plan *plan)
{
    if (acp_rules_are_walled ())
        mur_plan_env (plan, "GEMINI_CLI_TRUST_WORKSPACE", "true");
}

static void
add_environment (struct mur_plan *plan, const struct mur_json *config)
{
    mur_node env = mur_json_get (config, 0, "env"),
             wanted = mur_json_get (config, 0, "gateway_env");
    struct mur_gateway gateway = mur_harness_gateway (config);
    for (mur_node n = mur_json_first (config, env); n >= 0; n = mur_json_next (config, n)) {
        char *value = mur_json_text (config, n);
        if (value != NULL)
            mur_plan_env (plan, mur_json_key (config, n), with_gateway (value, &gateway));
        else
            mur_plan_refuse (plan, "inference.driver.config.env.%s: a text is wanted",
                             mur_json_key (config, n));
    }
    for (mur_node n = mur_json_first (config, wanted); n >= 0; n = mur_json_next (config, n)) {
        const char *name = mur_json_key (config, n);
        bool is_url = mur_json_is (config, n, "url"), is_key = mur_json_is (config, n, "key");
        if (! is_url && ! is_key)
            mur_plan_refuse (plan, "inference.driver.config.gateway_env.%s: url or key", name);
        else if (gateway.base_url == NULL)
            mur_plan_refuse (plan, "inference.driver.config.gateway_env: the driver's entry has no "
                                   "gateway");
        else
            mur_plan_env (plan, name, is_url ? gateway.base_url : gateway.placeholder);
    }
}

static void
ask (struct mur_text *line, int id, const char *method)
{
    run.awaited = id;
    mur_text_puts (line, "{");
    mur_text_string (line, "jsonrpc", "2.0");
    mur_text_printf (line, ",\"id\":%d", id);
    mur_text_string (line, "method", method);
    mur_text_puts (line, ",\"params\":{");
}

void
mur_process_launch (const struct mur_launch *launch, struct mur_plan *plan)
{
    run.launch = *launch;
    if (launch->bridge != NULL) {
        run.bridge = *launch->bridge;
        run.launch.bridge = &run.bridge;
    }
    if (! mur_harness_known (plan, launch->config, config_members) ||
        ! add_arguments (plan, launch->config))
        return;
    acp_rules_begin (launch->config);
    add_trust (plan);
    add_environment (plan, launch->config);
    acp_calls_begin (run.launch.bridge);
    struct mur_text line = { 0 };
    ask (&line, ASKED_INITIALIZE, "initialize");
    mur_text_puts (&line, "\"protocolVersion\":1,\"clientCapabilities\":{\"fs\":{"
                          "\"readTextFile\":false,\"writeTextFile\":false},\"terminal\":false},"
                          "\"clientInfo\":{\"name\":\"murmur\",\"version\":\"0.1.0\"}}}\n");
    mur_plan_stdin (plan, line.data, line.len, true);
}

/* --- what we ask --- */

static void
send (struct mur_text *line)
{
    mur_text_puts (line, "}}\n");
    mur_event_reply (line->data, line->len);
    mur_text_free (line);
}

static void
ask_session (void)
{
    struct mur_text line = { 0 };
    ask (&line, ASKED_SESSION, run.launch.is_resumed ? "session/load" : "session/new");
    if (run.launch.is_resumed)
        mur_text_string (&line, "sessionId", run.launch.session_id);
    mur_text_string (&line, "cwd", acp_rules_folder ());
    mur_text_key (&line, "mcpServers");
    mur_text_puts (&line, "[");
    if (run.launch.bridge != NULL && run.takes_http) {
        mur_text_puts (&line, "{\"type\":\"http\"");
        mur_text_string (&line, "name", run.bridge.server_name);
        mur_text_string (&line, "url", run.bridge.url);
        mur_text_puts (&line, ",\"headers\":[{\"name\":\"Authorization\"");
        mur_text_string (&line, "value", mur_format ("Bearer %s", run.bridge.bearer_token));
        mur_text_puts (&line, "}]}");
    } else if (run.launch.bridge != NULL) {
        mur_event_note ("the agent takes no MCP servers by address: the capsule's tools are not "
                        "offered to it");
    }
    mur_text_puts (&line, "]");
    run.is_replaying = run.launch.is_resumed;
    send (&line);
}

static void
ask_prompt (void)
{
    struct mur_text line = { 0 };
    ask (&line, ASKED_PROMPT, "session/prompt");
    mur_text_string (&line, "sessionId", run.session_id);
    mur_text_puts (&line, ",\"prompt\":[");
    if (! run.launch.is_resumed && run.launch.system_prompt != NULL &&
        run.launch.system_prompt[0] != '\0') {
        mur_text_puts (&line, "{\"type\":\"text\"");
        mur_text_string (&line, "text", run.launch.system_prompt);
        mur_text_puts (&line, "},");
    }
    mur_text_puts (&line, "{\"type\":\"text\"");
    mur_text_string (&line, "text", run.launch.task);
    mur_text_puts (&line, "}]");
    send (&line);
    /* From here on a cancel has something to stop. */
    struct mur_text stop = { 0 };
    mur_text_puts (&stop, "{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\",\"params\":{");
    mur_text_string (&stop, "sessionId", run.session_id);
    mur_text_puts (&stop, "}}\n");
    mur_event_interrupt (stop.data, stop.len);
    mur_text_free (&stop);
}

static void
ask_mode_or_prompt (void)
{
    char *mode = mur_json_text (run.launch.config, mur_json_get (run.launch.config, 0, "mode"));
    if (mode == NULL) {
        ask_prompt ();
        return;
    }
    struct mur_text line = { 0 };
    ask (&line, ASKED_MODE, "session/set_mode");
    mur_text_string (&line, "sessionId", run.session_id);
    mur_text_string (&line, "modeId", mode);
    send (&line);
}

/* --- what it answers --- */

static void
on_initialized (const struct mur_json *line, mur_node result)
{
    mur_node can = mur_json_get (line, result, "agentCapabilities");
    int64_t version = mur_json_int (line, mur_json_get (line, result, "protocolVersion"), 0);
    run.takes_http = mur_json_bool (
        line, mur_json_get (line, mur_json_get (line, can, "mcpCapabilities"), "http"), false);
    run.loads_sessions = mur_json_bool (line, mur_json_get (line, can, "loadSession"), false);
    if (version != 1)
        mur_event_turn_failed (MUR_TURN_HARNESS_ERROR,
                               "the agent speaks version %lld of the Agent Client Protocol, this "
                               "driver version 1",
                               (long long)version);
    else if (run.launch.is_resumed && ! run.loads_sessions)
        mur_event_turn_failed (MUR_TURN_OTHER, "the agent cannot load a session again");
    else {
        char *method =
            mur_json_text (run.launch.config, mur_json_get (run.launch.config, 0, "auth_method"));
        if (method == NULL) {
            ask_session ();
            return;
        }
        struct mur_text request = { 0 };
        ask (&request, ASKED_AUTHENTICATE, "authenticate");
        mur_text_string (&request, "methodId", method);
        send (&request);
    }
}

static void
on_session (const struct mur_json *line, mur_node result)
{
    char *id = mur_json_text (line, mur_json_get (line, result, "sessionId"));
    run.is_replaying = false;
    run.session_id = id != NULL ? id : mur_format ("%s", run.launch.session_id);
    mur_node models = mur_json_get (line, result, "models");
    bool has_gateway = mur_harness_gateway (run.launch.config).base_url != NULL;
    mur_event_session (run.session_id, has_gateway ? "api-key" : "subscription",
                       mur_json_text (line, mur_json_get (line, models, "currentModelId")));
    ask_mode_or_prompt ();
}

static void
end_part (void)
{
    if (run.part.len > 0)
        mur_event_text (run.part.data);
    mur_text_free (&run.part);
    memset (&run.part, 0, sizeof run.part);
}

static void
tell_usage (const struct mur_json *line, mur_node usage)
{
    if (mur_json_kind (line, usage) != MUR_JSON_OBJECT)
        return;
    const struct mur_process_usage told = {
        .input = mur_json_int (line, mur_json_get (line, usage, "inputTokens"), -1),
        .output = mur_json_int (line, mur_json_get (line, usage, "outputTokens"), -1),
        .cache_read = mur_json_int (line, mur_json_get (line, usage, "cachedReadTokens"), -1),
        .cache_creation = mur_json_int (line, mur_json_get (line, usage, "cachedWriteTokens"), -1),
        .thinking = -1,
    };
    mur_event_usage (&told);
}

static void
on_stop (const struct mur_json *line, mur_node result)
{
    static const struct {
        const char *reason;
        enum mur_turn_failure kind;
        const char *text;
    } bad[] = {
        { "cancelled", MUR_TURN_CANCELED, "canceled" },
        { "max_turn_requests", MUR_TURN_MAX_TURNS,
          "the agent's own bound of requests was reached" },
        { "refusal", MUR_TURN_OTHER, "the agent refused to go on" },
    };
    mur_node reason = mur_json_get (line, result, "stopReason");
    tell_usage (line, mur_json_get (line, result, "usage"));
    end_part ();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (mur_json_is (line, reason, bad[i].reason)) {
            mur_event_turn_failed (bad[i].kind, "%s", bad[i].text);
            return;
        }
    if (mur_json_is (line, reason, "max_tokens"))
        mur_event_note ("the answer was cut at the model's bound of tokens");
    mur_event_turn_end (run.answer.data != NULL ? run.answer.data : "");
}

static void
on_error (const struct mur_json *line, mur_node error, int id)
{
    static const char *const asked[] = { "",
                                         "initialize",
                                         "authenticate",
                                         "session/new or session/load",
                                         "session/set_mode",
                                         "session/prompt" };
    char *message = mur_json_text (line, mur_json_get (line, error, "message"));
    int64_t code = mur_json_int (line, mur_json_get (line, error, "code"), 0);
    mur_node data = mur_json_get (line, error, "data");
    size_t len = 0;
    const char *raw = mur_json_raw (line, data, &len);
    char *more = raw != NULL ? mur_format (" %.*s", (int)mur_utf8_prefix (raw, len, 500), raw)
                             : mur_format ("%s", "");
    char *whole = mur_format ("%s%s", message != NULL ? message : "it failed", more);
    mur_event_turn_failed (code == -32000 ? MUR_TURN_AUTH : mur_harness_failure (0, whole),
                           "%s: %s", asked[id], whole);
}

static void
on_answer (const struct mur_json *line, int id)
{
    mur_node result = mur_json_get (line, 0, "result"), error = mur_json_get (line, 0, "error");
    if (id != run.awaited || id == 0) {
        mur_event_note ("the agent answered what was not asked");
        return;
    }
    run.awaited = 0;
    if (mur_json_kind (line, error) == MUR_JSON_OBJECT)
        on_error (line, error, id);
    else if (id == ASKED_INITIALIZE)
        on_initialized (line, result);
    else if (id == ASKED_AUTHENTICATE)
        ask_session ();
    else if (id == ASKED_SESSION)
        on_session (line, result);
    else if (id == ASKED_MODE)
        ask_prompt ();
    else
        on_stop (line, result);
}

/* --- what it says meanwhile --- */

static void
on_text (const struct mur_json *line, mur_node update, bool is_thought)
{
    char *text =
        mur_json_text (line, mur_json_get (line, mur_json_get (line, update, "content"), "text"));
    if (text == NULL)
        return;
    if (is_thought) {
        mur_event_thinking_delta (text);
        return;
    }
    mur_text_puts (&run.answer, text);
    mur_text_puts (&run.part, text);
    mur_event_text_delta (text);
}

static void
on_update (const struct mur_json *line)
{
    mur_node update = mur_json_get (line, mur_json_get (line, 0, "params"), "update"),
             kind = mur_json_get (line, update, "sessionUpdate");
    if (run.is_replaying)
        return;
    if (mur_json_is (line, kind, "agent_message_chunk"))
        on_text (line, update, false);
    else if (mur_json_is (line, kind, "agent_thought_chunk"))
        on_text (line, update, true);
    else if (mur_json_is (line, kind, "tool_call") ||
             mur_json_is (line, kind, "tool_call_update")) {
        end_part ();
        acp_call_update (line, update);
    }
}

/* What we do not offer is told as JSON-RPC tells it. */
static void
refuse_method (const struct mur_json *line, const char *method)
{
    struct mur_text answer = { 0 };
    mur_text_printf (&answer, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32601",
                     mur_harness_value (line, mur_json_get (line, 0, "id")));
    mur_text_string (&answer, "message", mur_format ("%s is not offered", method));
    mur_text_puts (&answer, "}}\n");
    mur_event_reply (answer.data, answer.len);
    mur_text_free (&answer);
}

void
mur_process_line (const char *line, size_t len)
{
    struct mur_json *json = mur_json_parse (line, len);
    char *method = mur_json_text (json, mur_json_get (json, 0, "method"));
    mur_node id = mur_json_get (json, 0, "id");
    bool is_request = method != NULL && mur_json_kind (json, id) != MUR_JSON_ABSENT,
         is_update = method != NULL && strcmp (method, "session/update") == 0;
    if (is_update) {
        on_update (json);
        if (is_request) /* a notification should have no id: who gives one waits for an answer */
            refuse_method (json, method);
    } else if (method != NULL && strcmp (method, "session/request_permission") == 0)
        acp_permission (json);
    else if (is_request)
        refuse_method (json, method);
    else if (method == NULL && mur_json_kind (json, id) == MUR_JSON_NUMBER)
        on_answer (json, (int)mur_json_int (json, id, 0));
    else if (len > 0)
        mur_event_note (mur_format ("%.*s", (int)mur_utf8_prefix (line, len, 1000), line));
    mur_json_free (json);
}

/* --- its end --- */

void
mur_process_exit (const struct mur_exit *exit)
{
    const char *tail = exit->stderr_tail != NULL ? exit->stderr_tail : "";
    const char *where = run.session_id != NULL ? "the agent ended in the middle of its turn"
                                               : "the agent ended before it had a session";
    mur_event_turn_failed (mur_harness_failure (0, tail), "%s%s%s", where, *tail ? ": " : "", tail);
}
