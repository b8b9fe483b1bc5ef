/* SPDX-License-Identifier: Apache-2.0
 *
 * Codex as a harness: `codex exec --json`, its own tools beside those of the capsule, its thread
 * resumed by the id it gave itself.
 *
 * Members of inference.driver.config: sandbox_mode, approval_policy, effort, extra_args. Codex' own
 * sandbox asks the kernel for what walls around it refuse: inside scoped or sealed set
 * sandbox_mode: danger-full-access, since the walls are ours. Its exec mode asks nobody; where
 * somebody is to be asked it runs as a server (app_server.c).
 */
#include "codex.h"
#include "murmur_harness.h"

#include <stdlib.h>
#include <string.h>

static const char *const config_members[] = { "sandbox_mode", "approval_policy", "effort",
                                              "extra_args", NULL };

/* The mode of this run. */
static bool is_server;

void
mur_process_describe (struct mur_harness *harness)
{
    static const char *const version_args[] = { "--version", NULL };
    static const char *const tested[] = { "0.171.0", NULL };
    *harness = (struct mur_harness){
        .harness = "codex",
        .binary = "codex",
        .version_args = version_args,
        .tested_versions = tested,
        .interrupt = MUR_INTERRUPT_SIGNAL,
        .streams_text = false,
        .reports_usage = true,
    };
}

/* --- launch --- */

/* -c key="value": a JSON string is a TOML string. */
void
codex_setting (struct mur_plan *plan, const char *key, const char *value)
{
    if (value == NULL)
        return;
    struct mur_text setting = { 0 };
    mur_text_printf (&setting, "%s=", key);
    mur_text_json (&setting, value);
    mur_plan_arg (plan, "-c");
    mur_plan_arg (plan, setting.data);
}

static void
add_bridge (struct mur_plan *plan, const struct mur_bridge *bridge)
{
    if (bridge == NULL)
        return;
    codex_setting (plan, mur_format ("mcp_servers.%s.url", bridge->server_name), bridge->url);
    codex_setting (plan, mur_format ("mcp_servers.%s.bearer_token_env_var", bridge->server_name),
                   "MURMUR_BRIDGE_TOKEN");
    mur_plan_env (plan, "MURMUR_BRIDGE_TOKEN", bridge->bearer_token);
    /* A call may wait for a person; whoever asks has a time of its own. */
    mur_plan_arg (plan, "-c");
    mur_plan_arg (plan, mur_format ("mcp_servers.%s.tool_timeout_sec=604800", bridge->server_name));
}

static void
add_gateway (struct mur_plan *plan, const struct mur_json *config)
{
    struct mur_gateway gateway = mur_harness_gateway (config);
    if (gateway.base_url == NULL)
        return;
    codex_setting (plan, "model_provider", "murmur");
    codex_setting (plan, "model_providers.murmur.name", "murmur");
    codex_setting (plan, "model_providers.murmur.base_url", gateway.base_url);
    codex_setting (plan, "model_providers.murmur.env_key", "MURMUR_PROVIDER_KEY");
    codex_setting (plan, "model_providers.murmur.wire_api", "responses");
    mur_plan_env (plan, "MURMUR_PROVIDER_KEY", gateway.placeholder);
}

void
mur_process_launch (const struct mur_launch *launch, struct mur_plan *plan)
{
    const struct mur_json *config = launch->config;
    char *sandbox = mur_json_text (config, mur_json_get (config, 0, "sandbox_mode"));
    if (! mur_harness_known (plan, config, config_members))
        return;
    is_server = codex_asks (config);
    if (is_server) {
        mur_plan_arg (plan, "app-server");
        codex_server_plan (launch, plan);
    } else {
        mur_plan_arg (plan, "exec");
        if (launch->is_resumed)
            mur_plan_arg (plan, "resume");
        mur_plan_arg (plan, "--json");
        mur_plan_arg (plan, "--skip-git-repo-check");
        codex_setting (plan, "approval_policy", "never");
    }
    codex_setting (plan, "sandbox_mode", sandbox != NULL ? sandbox : "workspace-write");
    codex_setting (plan, "model_reasoning_effort",
                   mur_json_text (config, mur_json_get (config, 0, "effort")));
    codex_setting (plan, "developer_instructions", launch->system_prompt);
    mur_plan_arg (plan, "-c");
    mur_plan_arg (plan, "check_for_update_on_startup=false");
    /* A login shell makes a PATH of its own, without what the capsule allows. */
    mur_plan_arg (plan, "-c");
    mur_plan_arg (plan, "allow_login_shell=false");
    if (launch->model != NULL && ! is_server) {
        mur_plan_arg (plan, "-m");
        mur_plan_arg (plan, launch->model);
    }
    add_bridge (plan, launch->bridge);
    add_gateway (plan, config);
    if (! mur_harness_args (plan, config, "extra_args") || is_server)
        return;
    if (launch->is_resumed)
        mur_plan_arg (plan, launch->session_id);
    mur_plan_arg (plan, "-");
    mur_plan_stdin (plan, launch->task, strlen (launch->task), false);
}

/* --- lines --- */

static char *last_message, *last_error;

static char *
raw_copy (const struct mur_json *line, mur_node node)
{
    size_t len = 0;
    const char *raw = mur_json_raw (line, node, &len);
    return raw != NULL ? mur_format ("%.*s", (int)len, raw) : NULL;
}

char *
codex_text (const struct mur_json *line, mur_node object, const char *key)
{
    return mur_json_text (line, mur_json_get (line, object, key));
}

/* The name and input of an item that is a call; false for any other kind. */
static bool
describe_call (const struct mur_json *line, mur_node item, char **name, char **input)
{
    mur_node type = mur_json_get (line, item, "type");
    struct mur_text in = { 0 };
    if (mur_json_is (line, type, "command_execution")) {
        *name = mur_format ("command_execution");
        mur_text_puts (&in, "{");
        mur_text_string (&in, "command", codex_text (line, item, "command"));
        mur_text_puts (&in, "}");
    } else if (mur_json_is (line, type, "mcp_tool_call")) {
        *name = mur_format ("mcp__%s__%s", codex_text (line, item, "server"),
                            codex_text (line, item, "tool"));
        char *arguments = raw_copy (line, mur_json_get (line, item, "arguments"));
        mur_text_puts (&in, arguments != NULL ? arguments : "{}");
    } else if (mur_json_is (line, type, "file_change") || mur_json_is (line, type, "web_search")) {
        *name = mur_json_text (line, type);
        mur_text_puts (&in, "{");
        mur_text_node (&in, "changes", line, mur_json_get (line, item, "changes"));
        mur_text_string (&in, "query", codex_text (line, item, "query"));
        mur_text_puts (&in, "}");
    } else {
        return false;
    }
    *input = in.data;
    return true;
}

/* The calls that were told when they began, by id. */
#define STARTED_MAX 64
static char *started[STARTED_MAX];

static bool
take_started (const char *id)
{
    for (size_t i = 0; i < STARTED_MAX; i++)
        if (started[i] != NULL && strcmp (started[i], id) == 0) {
            started[i] = NULL;
            return true;
        }
    return false;
}

static void
on_item_started (const struct mur_json *line, mur_node item)
{
    char *name, *input, *id = codex_text (line, item, "id");
    if (id == NULL || ! describe_call (line, item, &name, &input))
        return;
    mur_event_call (id, name, input);
    for (size_t i = 0; i < STARTED_MAX; i++)
        if (started[i] == NULL) {
            started[i] = id;
            return;
        }
}

/* What a call gave back: a command's output, an MCP result's texts, else the item as it stands. */
static char *
call_output (const struct mur_json *line, mur_node item)
{
    char *output = codex_text (line, item, "aggregated_output");
    if (output != NULL)
        return output;
    struct mur_text text = { 0 };
    mur_node content = mur_json_get (line, mur_json_get (line, item, "result"), "content");
    for (mur_node n = mur_json_first (line, content); n >= 0; n = mur_json_next (line, n)) {
        char *part = codex_text (line, n, "text");
        mur_text_puts (&text, part != NULL ? part : "[content]");
    }
    char *error = codex_text (line, mur_json_get (line, item, "error"), "message");
    if (error != NULL)
        mur_text_puts (&text, error);
    char *status = codex_text (line, item, "status");
    if (text.data == NULL)
        mur_text_puts (&text, status != NULL ? status : "");
    return text.data;
}

static void
on_item_completed (const struct mur_json *line, mur_node item)
{
    mur_node type = mur_json_get (line, item, "type");
    char *name, *input, *id = codex_text (line, item, "id"),
                        *text = codex_text (line, item, "text");
    if (mur_json_is (line, type, "agent_message") && text != NULL) {
        last_message = text;
        mur_event_text (text);
    } else if (mur_json_is (line, type, "reasoning") && text != NULL) {
        mur_event_thinking (text);
    } else if (id != NULL && describe_call (line, item, &name, &input)) {
        mur_node code = mur_json_get (line, item, "exit_code");
        bool has_failed =
            mur_json_is (line, mur_json_get (line, item, "status"), "failed") ||
            (mur_json_kind (line, code) == MUR_JSON_NUMBER && mur_json_int (line, code, 0) != 0);
        if (! take_started (id))
            mur_event_call (id, name, input);
        mur_event_result (id, call_output (line, item), has_failed);
    } else {
        char *message = codex_text (line, item, "message");
        if (message != NULL || text != NULL)
            mur_event_note (message != NULL ? message : text);
    }
}

static int64_t
count_of (const struct mur_json *line, mur_node usage, const char *snake, const char *camel)
{
    int64_t count = mur_json_int (line, mur_json_get (line, usage, snake), -1);
    return count >= 0 ? count : mur_json_int (line, mur_json_get (line, usage, camel), -1);
}

void
codex_usage (const struct mur_json *line, mur_node usage, struct mur_process_usage *to)
{
    int64_t input = count_of (line, usage, "input_tokens", "inputTokens"),
            cached = count_of (line, usage, "cached_input_tokens", "cachedInputTokens");
    *to = (struct mur_process_usage){
        .input = input >= cached && cached > 0 ? input - cached : input,
        .output = count_of (line, usage, "output_tokens", "outputTokens"),
        .cache_read = cached,
        .cache_creation =
            count_of (line, usage, "cache_write_input_tokens", "cacheWriteInputTokens"),
        .thinking = count_of (line, usage, "reasoning_output_tokens", "reasoningOutputTokens"),
    };
}

static void
on_turn_completed (const struct mur_json *line)
{
    struct mur_process_usage usage;
    codex_usage (line, mur_json_get (line, 0, "usage"), &usage);
    mur_event_usage (&usage);
    mur_event_turn_end (last_message != NULL ? last_message : "");
}

/* "Reconnecting... 2/5 (why)" is a retry; any other error is kept for the end. */
static void
on_error (const struct mur_json *line)
{
    char *message = codex_text (line, 0, "message");
    if (message == NULL)
        return;
    const char *number =
        strncmp (message, "Reconnecting", 12) == 0 ? strpbrk (message, "123456789") : NULL;
    if (number != NULL) {
        mur_event_retry ((uint32_t)strtoul (number, NULL, 10), message);
        return;
    }
    last_error = message;
    mur_event_note (message);
}

void
mur_process_line (const char *line, size_t len)
{
    struct mur_json *json = mur_json_parse (line, len);
    mur_node type = mur_json_get (json, 0, "type"), item = mur_json_get (json, 0, "item");
    if (is_server)
        codex_server_line (json, line, len);
    else if (mur_json_is (json, type, "thread.started")) {
        mur_event_session (codex_text (json, 0, "thread_id"), "unknown", NULL);
    } else if (mur_json_is (json, type, "item.started")) {
        on_item_started (json, item);
    } else if (mur_json_is (json, type, "item.completed")) {
        on_item_completed (json, item);
    } else if (mur_json_is (json, type, "turn.completed")) {
        on_turn_completed (json);
    } else if (mur_json_is (json, type, "turn.failed")) {
        char *message = codex_text (json, mur_json_get (json, 0, "error"), "message");
        mur_event_turn_failed (mur_harness_failure (0, message), "%s",
                               message != NULL ? message : "the turn failed");
    } else if (mur_json_is (json, type, "error")) {
        on_error (json);
    } else if (! mur_json_is (json, type, "turn.started") &&
               ! mur_json_is (json, type, "item.updated") && len > 0) {
        mur_event_note (mur_format ("%.*s", (int)mur_utf8_prefix (line, len, 1000), line));
    }
    mur_json_free (json);
}

/* --- its end --- */

void
mur_process_exit (const struct mur_exit *exit)
{
    const char *tail = exit->stderr_tail != NULL ? exit->stderr_tail : "";
    const char *told = is_server ? codex_server_error () : last_error;
    const char *why = told != NULL ? told : tail;
    mur_event_turn_failed (mur_harness_failure (0, why), "codex ended without a result%s%s",
                           *why ? ": " : "", why);
}
