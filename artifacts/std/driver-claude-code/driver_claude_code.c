/* SPDX-License-Identifier: Apache-2.0
 *
 * Claude Code as a harness: started with its print mode and JSON lines, its own tools beside those
 * of the capsule, its conversation resumed by its own id.
 *
 * Members of inference.driver.config: permission_mode, allowed_tools, disallowed_tools, effort,
 * max_turns, extra_args. What it asks for comes on its control channel (control.c), which every
 * version that calls itself Claude Code has; another program is only told its task.
 */
#include "claude.h"
#include "murmur_harness.h"

#include <stdlib.h>
#include <string.h>

static const char *const config_members[] = { "permission_mode",
                                              "allowed_tools",
                                              "disallowed_tools",
                                              "effort",
                                              "max_turns",
                                              "extra_args",
                                              NULL };

void
mur_process_describe (struct mur_harness *harness)
{
    static const char *const version_args[] = { "--version", NULL };
    static const char *const tested[] = { "2.1.197", NULL };
    *harness = (struct mur_harness){
        .harness = "claude-code",
        .binary = "claude",
        .version_args = version_args,
        .tested_versions = tested,
        .interrupt = MUR_INTERRUPT_SIGNAL,
        .streams_text = true,
        .reports_usage = true,
    };
}

/* --- launch --- */

static void
add_option (struct mur_plan *plan, const char *option, const char *value)
{
    if (value == NULL)
        return;
    mur_plan_arg (plan, option);
    mur_plan_arg (plan, value);
}

/* Its tools are named mcp__<server>__<tool>: the server's name alone allows them all. */
static void
add_bridge (struct mur_plan *plan, const struct mur_bridge *bridge, const char *allowed)
{
    struct mur_text file = { 0 }, names = { 0 };
    mur_text_puts (&file, "{\"mcpServers\":{");
    if (bridge != NULL) {
        mur_text_key (&file, bridge->server_name);
        mur_text_puts (&file, "{\"type\":\"http\"");
        mur_text_string (&file, "url", bridge->url);
        mur_text_puts (&file, ",\"headers\":{");
        mur_text_string (&file, "Authorization", mur_format ("Bearer %s", bridge->bearer_token));
        mur_text_puts (&file, "}}");
        mur_text_printf (&names, "mcp__%s", bridge->server_name);
    }
    mur_text_puts (&file, "}}");
    mur_plan_file (plan, "mcp.json", file.data, file.len);
    mur_plan_arg (plan, "--strict-mcp-config");
    add_option (plan, "--mcp-config", "{files_dir}/mcp.json");
    if (allowed != NULL)
        mur_text_printf (&names, "%s%s", names.len > 0 ? "," : "", allowed);
    add_option (plan, "--allowedTools", names.data);
}

static void
add_task (struct mur_plan *plan, const struct mur_launch *launch)
{
    bool has_control = launch->harness_version != NULL &&
                       strstr (launch->harness_version, "(Claude Code)") != NULL;
    if (! has_control) {
        mur_plan_stdin (plan, launch->task, strlen (launch->task), false);
        return;
    }
    struct mur_text input = { 0 };
    add_option (plan, "--input-format", "stream-json");
    add_option (plan, "--permission-prompt-tool", "stdio");
    claude_control_begin (launch->config, &input);
    mur_text_puts (&input, "{\"type\":\"user\",\"message\":{\"role\":\"user\"");
    mur_text_string (&input, "content", launch->task);
    mur_text_puts (&input, "}}\n");
    mur_plan_stdin (plan, input.data, input.len, true);
}

static void
add_environment (struct mur_plan *plan, const struct mur_json *config)
{
    static const struct {
        const char *name, *value;
    } quiet[] = {
        { "DISABLE_TELEMETRY", "1" },
        { "DISABLE_ERROR_REPORTING", "1" },
        { "DISABLE_AUTOUPDATER", "1" },
        { "DISABLE_BUG_COMMAND", "1" },
        { "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1" },
        /* It is inside walls of ours: without this it refuses permission modes to root. */
        { "IS_SANDBOX", "1" },
    };
    for (size_t i = 0; i < sizeof quiet / sizeof *quiet; i++)
        mur_plan_env (plan, quiet[i].name, quiet[i].value);
    struct mur_gateway gateway = mur_harness_gateway (config);
    if (gateway.base_url == NULL)
        return;
    mur_plan_env (plan, "ANTHROPIC_BASE_URL", gateway.base_url);
    mur_plan_env (plan, "ANTHROPIC_API_KEY", gateway.placeholder);
}

void
mur_process_launch (const struct mur_launch *launch, struct mur_plan *plan)
{
    const struct mur_json *config = launch->config;
    if (! mur_harness_known (plan, config, config_members))
        return;
    static const char *const fixed[] = { "-p", "--output-format", "stream-json", "--verbose",
                                         "--include-partial-messages" };
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        mur_plan_arg (plan, fixed[i]);
    add_option (plan, launch->is_resumed ? "--resume" : "--session-id", launch->session_id);
    add_option (plan, "--model", launch->model);
    add_option (plan, "--append-system-prompt", launch->system_prompt);
    add_option (plan, "--permission-mode",
                mur_json_text (config, mur_json_get (config, 0, "permission_mode")));
    add_option (plan, "--effort", mur_json_text (config, mur_json_get (config, 0, "effort")));
    int64_t max_turns = mur_json_int (config, mur_json_get (config, 0, "max_turns"), 0);
    if (max_turns > 0)
        add_option (plan, "--max-turns", mur_format ("%lld", (long long)max_turns));
    add_bridge (plan, launch->bridge, mur_harness_joined (config, "allowed_tools"));
    add_option (plan, "--disallowedTools", mur_harness_joined (config, "disallowed_tools"));
    if (! mur_harness_args (plan, config, "extra_args"))
        return;
    add_environment (plan, config);
    add_task (plan, launch);
}

/* --- lines --- */

/* What the run has used: whole messages, and the one under way. */
static struct mur_process_usage finished, current;

static void
take_usage (struct mur_process_usage *to, const struct mur_json *line, mur_node usage)
{
    const struct {
        const char *key;
        int64_t *value;
    } members[] = {
        { "input_tokens", &to->input },
        { "output_tokens", &to->output },
        { "cache_read_input_tokens", &to->cache_read },
        { "cache_creation_input_tokens", &to->cache_creation },
    };
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        mur_node n = mur_json_get (line, usage, members[i].key);
        if (mur_json_kind (line, n) == MUR_JSON_NUMBER)
            *members[i].value = mur_json_int (line, n, 0);
    }
}

static void
tell_usage (const struct mur_process_usage *u)
{
    struct mur_process_usage told = *u;
    told.thinking = -1;
    mur_event_usage (&told);
}

/* The end of one message of the model. */
static void
message_ends (void)
{
    finished.input += current.input;
    finished.output += current.output;
    finished.cache_read += current.cache_read;
    finished.cache_creation += current.cache_creation;
    memset (&current, 0, sizeof current);
    tell_usage (&finished);
}

static void
on_stream_event (const struct mur_json *line, bool is_of_subagent)
{
    mur_node event = mur_json_get (line, 0, "event"), type = mur_json_get (line, event, "type");
    if (mur_json_is (line, type, "message_start")) {
        take_usage (&current, line,
                    mur_json_get (line, mur_json_get (line, event, "message"), "usage"));
    } else if (mur_json_is (line, type, "message_delta")) {
        take_usage (&current, line, mur_json_get (line, event, "usage"));
    } else if (mur_json_is (line, type, "message_stop")) {
        message_ends ();
    } else if (mur_json_is (line, type, "content_block_start")) {
        mur_node block = mur_json_get (line, event, "content_block");
        if (mur_json_is (line, mur_json_get (line, block, "type"), "tool_use"))
            mur_event_call_started (mur_json_text (line, mur_json_get (line, block, "id")),
                                    mur_json_text (line, mur_json_get (line, block, "name")));
    } else if (mur_json_is (line, type, "content_block_delta") && ! is_of_subagent) {
        mur_node delta = mur_json_get (line, event, "delta");
        char *text = mur_json_text (line, mur_json_get (line, delta, "text"));
        char *thinking = mur_json_text (line, mur_json_get (line, delta, "thinking"));
        if (text != NULL)
            mur_event_text_delta (text);
        if (thinking != NULL)
            mur_event_thinking_delta (thinking);
    }
}

static char *
raw_copy (const struct mur_json *line, mur_node node)
{
    size_t len = 0;
    const char *raw = mur_json_raw (line, node, &len);
    return raw != NULL ? mur_format ("%.*s", (int)len, raw) : mur_format ("{}");
}

static void
on_assistant (const struct mur_json *line, bool is_of_subagent)
{
    mur_node content = mur_json_get (line, mur_json_get (line, 0, "message"), "content");
    for (mur_node n = mur_json_first (line, content); n >= 0; n = mur_json_next (line, n)) {
        mur_node type = mur_json_get (line, n, "type");
        char *text = mur_json_text (line, mur_json_get (line, n, "text")),
             *thinking = mur_json_text (line, mur_json_get (line, n, "thinking"));
        if (mur_json_is (line, type, "tool_use"))
            mur_event_call (mur_json_text (line, mur_json_get (line, n, "id")),
                            mur_json_text (line, mur_json_get (line, n, "name")),
                            raw_copy (line, mur_json_get (line, n, "input")));
        else if (mur_json_is (line, type, "text") && text != NULL && is_of_subagent)
            mur_event_note (mur_format ("a sub-agent says: %.*s",
                                        (int)mur_utf8_prefix (text, strlen (text), 2000), text));
        else if (mur_json_is (line, type, "text") && text != NULL)
            mur_event_text (text);
        else if (mur_json_is (line, type, "thinking") && thinking != NULL && ! is_of_subagent)
            mur_event_thinking (thinking);
    }
}

/* A result's content: a text, or a list of parts. */
static char *
result_text (const struct mur_json *line, mur_node content)
{
    char *whole = mur_json_text (line, content);
    if (whole != NULL)
        return whole;
    struct mur_text text = { 0 };
    for (mur_node n = mur_json_first (line, content); n >= 0; n = mur_json_next (line, n)) {
        char *part = mur_json_text (line, mur_json_get (line, n, "text"));
        if (text.len > 0)
            mur_text_puts (&text, "\n");
        if (part != NULL)
            mur_text_puts (&text, part);
        else
            mur_text_printf (&text, "[%s]", mur_json_text (line, mur_json_get (line, n, "type")));
    }
    return text.data != NULL ? text.data : mur_format ("%s", "");
}

static void
on_user (const struct mur_json *line)
{
    mur_node content = mur_json_get (line, mur_json_get (line, 0, "message"), "content");
    for (mur_node n = mur_json_first (line, content); n >= 0; n = mur_json_next (line, n))
        if (mur_json_is (line, mur_json_get (line, n, "type"), "tool_result"))
            mur_event_result (mur_json_text (line, mur_json_get (line, n, "tool_use_id")),
                              result_text (line, mur_json_get (line, n, "content")),
                              mur_json_bool (line, mur_json_get (line, n, "is_error"), false));
}

static void
on_init (const struct mur_json *line)
{
    mur_node source = mur_json_get (line, 0, "apiKeySource");
    char *word = mur_json_text (line, source);
    const char *auth = word == NULL || strcmp (word, "none") == 0 ? "unknown"
                       : strstr (word, "oauth") != NULL           ? "subscription"
                                                                  : "api-key";
    mur_event_session (mur_json_text (line, mur_json_get (line, 0, "session_id")), auth,
                       mur_json_text (line, mur_json_get (line, 0, "model")));
}

static void
on_system (const struct mur_json *line)
{
    char *subtype = mur_json_text (line, mur_json_get (line, 0, "subtype"));
    if (subtype == NULL || strcmp (subtype, "status") == 0)
        return;
    if (strcmp (subtype, "init") == 0) {
        on_init (line);
    } else if (strstr (subtype, "retry") != NULL) {
        char *error = mur_json_text (line, mur_json_get (line, 0, "error"));
        int64_t status = mur_json_int (line, mur_json_get (line, 0, "error_status"), 0);
        if (status == 401 ||
            status == 403) { /* it would ask for minutes what is answered already */
            mur_event_turn_failed (MUR_TURN_AUTH, "the provider answered HTTP %lld: %s",
                                   (long long)status, error != NULL ? error : "refused");
            return;
        }
        mur_event_retry ((uint32_t)mur_json_int (line, mur_json_get (line, 0, "attempt"), 1),
                         mur_format ("%s%s%lld", error != NULL ? error : "the provider failed",
                                     status ? ", HTTP " : "", (long long)status));
    } else {
        mur_event_note (subtype);
    }
}

static void
on_result (const struct mur_json *line)
{
    mur_node cost = mur_json_get (line, 0, "total_cost_usd");
    char *subtype = mur_json_text (line, mur_json_get (line, 0, "subtype")),
         *text = mur_json_text (line, mur_json_get (line, 0, "result"));
    if (text == NULL)
        text = mur_json_text (line, mur_json_at (line, mur_json_get (line, 0, "errors"), 0));
    struct mur_process_usage total = finished;
    take_usage (&total, line, mur_json_get (line, 0, "usage"));
    tell_usage (&total);
    if (mur_json_kind (line, cost) == MUR_JSON_NUMBER)
        mur_event_note (mur_format ("total_cost_usd %s", raw_copy (line, cost)));
    for (mur_node list = mur_json_get (line, 0, "permission_denials"),
                  n = mur_json_first (line, list);
         n >= 0; n = mur_json_next (line, n))
        mur_event_note (mur_format ("permission was refused to %s",
                                    mur_json_text (line, mur_json_get (line, n, "tool_name"))));
    if (subtype != NULL && strcmp (subtype, "success") == 0 &&
        ! mur_json_bool (line, mur_json_get (line, 0, "is_error"), false)) {
        mur_event_turn_end (text != NULL ? text : "");
        return;
    }
    int status = (int)mur_json_int (line, mur_json_get (line, 0, "api_error_status"), 0);
    enum mur_turn_failure kind = subtype != NULL && strcmp (subtype, "error_max_turns") == 0
                                     ? MUR_TURN_MAX_TURNS
                                 : subtype != NULL && strstr (subtype, "budget") != NULL
                                     ? MUR_TURN_QUOTA
                                     : mur_harness_failure (status, text);
    mur_event_turn_failed (kind, "%s",
                           text != NULL      ? text
                           : subtype != NULL ? subtype
                                             : "it failed");
}

void
mur_process_line (const char *line, size_t len)
{
    struct mur_json *json = mur_json_parse (line, len);
    mur_node type = mur_json_get (json, 0, "type");
    bool is_of_subagent =
        mur_json_kind (json, mur_json_get (json, 0, "parent_tool_use_id")) == MUR_JSON_STRING;
    if (mur_json_is (json, type, "stream_event"))
        on_stream_event (json, is_of_subagent);
    else if (mur_json_is (json, type, "assistant"))
        on_assistant (json, is_of_subagent);
    else if (mur_json_is (json, type, "user"))
        on_user (json);
    else if (mur_json_is (json, type, "system"))
        on_system (json);
    else if (mur_json_is (json, type, "result"))
        on_result (json);
    else if (mur_json_is (json, type, "control_request"))
        claude_control_request (json);
    else if (len > 0 && ! mur_json_is (json, type, "control_response") &&
             ! mur_json_is (json, type, "control_cancel_request"))
        mur_event_note (mur_format ("%.*s", (int)mur_utf8_prefix (line, len, 1000), line));
    mur_json_free (json);
}

/* --- its end --- */

void
mur_process_exit (const struct mur_exit *exit)
{
    const char *tail = exit->stderr_tail != NULL ? exit->stderr_tail : "";
    mur_event_turn_failed (mur_harness_failure (0, tail), "claude ended without a result%s%s",
                           *tail ? ": " : "", tail);
}
