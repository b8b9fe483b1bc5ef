/* SPDX-License-Identifier: Apache-2.0
 *
 * `codex app-server`: the same program over JSON-RPC on standard input and output, as its own
 * clients run it. Here it asks before it acts, and the person, or the manifest's rules, answer.
 * What this driver does not know is refused in the protocol's words.
 */
#include "codex.h"
#include "murmur_harness.h"

#include <stdlib.h>
#include <string.h>

#define QUESTIONS_MAX 16
#define OPTIONS_MAX   32
#define ITEMS_MAX     4096

enum {
    ASKED_INITIALIZE = 1,
    ASKED_THREAD,
    ASKED_TURN,
};

/* A call of its own, until it is over: a request for approval names its item alone. */
struct item {
    char *id, *name, *input;
};

/* One run; the launch's texts live as long as the instance. */
static struct {
    struct mur_launch launch;
    const char *policy;
    char *thread_id, *last_message, *last_error;
    struct item *items;
    size_t item_count;
    bool asks_by_itself;
} run;

/* --- launch --- */

static char *
policy_of (const struct mur_json *config)
{
    return codex_text (config, 0, "approval_policy");
}

bool
codex_asks (const struct mur_json *config)
{
    char *policy = policy_of (config);
    mur_node rules = mur_json_get (config, 0, "$rules");
    return (policy != NULL && strcmp (policy, "never") != 0) ||
           mur_json_bool (config, mur_json_get (config, rules, "approvals"), false);
}

static void
ask (struct mur_text *line, int id, const char *method)
{
    mur_text_printf (line, "{\"id\":%d", id);
    mur_text_string (line, "method", method);
    mur_text_puts (line, ",\"params\":{");
}

void
codex_server_plan (const struct mur_launch *launch, struct mur_plan *plan)
{
    static const char *const policies[] = { "never", "untrusted", "on-failure", "on-request",
                                            NULL };
    char *policy = policy_of (launch->config);
    size_t known = 0;
    while (policy != NULL && policies[known] != NULL && strcmp (policies[known], policy) != 0)
        known++;
    if (policies[known] == NULL)
        mur_plan_refuse (plan,
                         "inference.driver.config.approval_policy: never, untrusted, "
                         "on-failure or on-request, not %s",
                         policy);
    run.launch = *launch;
    run.asks_by_itself = policy != NULL && known > 0;
    /* With rules alone it tells of every call, and what no rule covers is let pass. */
    run.policy = run.asks_by_itself ? policy : "untrusted";
    struct mur_text line = { 0 };
    ask (&line, ASKED_INITIALIZE, "initialize");
    mur_text_puts (&line, "\"clientInfo\":{\"name\":\"murmur\",\"version\":\"0.1.0\"}}}\n");
    mur_plan_stdin (plan, line.data, line.len, true);
}

/* --- what we ask --- */

static void
send (struct mur_text *line, const char *end)
{
    mur_text_puts (line, end);
    mur_event_reply (line->data, line->len);
    mur_text_free (line);
}

static void
ask_thread (void)
{
    struct mur_text line = { 0 };
    mur_text_puts (&line, "{\"method\":\"initialized\"}\n");
    ask (&line, ASKED_THREAD, run.launch.is_resumed ? "thread/resume" : "thread/start");
    if (run.launch.is_resumed)
        mur_text_string (&line, "threadId", run.launch.session_id);
    mur_text_string (&line, "model", run.launch.model);
    mur_text_string (&line, "approvalPolicy", run.policy);
    send (&line, "}}\n");
}

static void
ask_turn (void)
{
    struct mur_text line = { 0 };
    ask (&line, ASKED_TURN, "turn/start");
    mur_text_string (&line, "threadId", run.thread_id);
    mur_text_puts (&line, ",\"input\":[{\"type\":\"text\"");
    mur_text_string (&line, "text", run.launch.task);
    send (&line, "}]}}\n");
}

/* --- what it answers --- */

static void
on_answer (const struct mur_json *line, int id)
{
    mur_node result = mur_json_get (line, 0, "result"), error = mur_json_get (line, 0, "error");
    if (mur_json_kind (line, error) == MUR_JSON_OBJECT) {
        char *message = codex_text (line, error, "message");
        mur_event_turn_failed (mur_harness_failure (0, message), "%s",
                               message != NULL ? message : "it refused what it was asked");
    } else if (id == ASKED_INITIALIZE) {
        ask_thread ();
    } else if (id == ASKED_THREAD) {
        run.thread_id = codex_text (line, mur_json_get (line, result, "thread"), "id");
        if (run.thread_id == NULL)
            run.thread_id =
                mur_format ("%s", run.launch.session_id != NULL ? run.launch.session_id : "");
        mur_event_session (run.thread_id, "unknown", codex_text (line, result, "model"));
        ask_turn ();
    }
}

/* --- its calls --- */

static bool
describe_item (const struct mur_json *line, mur_node item, char **name, char **input)
{
    mur_node type = mur_json_get (line, item, "type");
    struct mur_text in = { 0 };
    if (mur_json_is (line, type, "commandExecution")) {
        *name = mur_format ("command_execution");
        mur_text_puts (&in, "{");
        mur_text_string (&in, "command", codex_text (line, item, "command"));
        mur_text_puts (&in, "}");
    } else if (mur_json_is (line, type, "mcpToolCall")) {
        *name = mur_format ("mcp__%s__%s", codex_text (line, item, "server"),
                            codex_text (line, item, "tool"));
        mur_text_puts (&in, mur_harness_object (line, mur_json_get (line, item, "arguments")));
    } else if (mur_json_is (line, type, "fileChange") || mur_json_is (line, type, "webSearch")) {
        *name = mur_format (mur_json_is (line, type, "fileChange") ? "file_change" : "web_search");
        mur_text_printf (&in, "{\"changes\":%s",
                         mur_harness_value (line, mur_json_get (line, item, "changes")));
        mur_text_string (&in, "query", codex_text (line, item, "query"));
        mur_text_puts (&in, "}");
    } else {
        return false;
    }
    *input = in.data;
    return true;
}

static struct item *
known (const char *id)
{
    for (size_t i = 0; id != NULL && i < run.item_count; i++)
        if (strcmp (run.items[i].id, id) == 0)
            return &run.items[i];
    return NULL;
}

/* Tells the call, unless it was told; NULL when the item is none. */
static struct item *
take_call (const struct mur_json *line, mur_node item)
{
    char *name, *input, *id = codex_text (line, item, "id");
    struct item *before = known (id);
    if (before != NULL || id == NULL || ! describe_item (line, item, &name, &input))
        return before;
    struct item *more = run.item_count < ITEMS_MAX
                            ? realloc (run.items, (run.item_count + 1) * sizeof *more)
                            : NULL;
    if (more == NULL)
        return NULL;
    run.items = more;
    run.items[run.item_count] = (struct item){ id, name, input };
    mur_event_call (id, name, input);
    return &run.items[run.item_count++];
}

static char *
output_of (const struct mur_json *line, mur_node item)
{
    struct mur_text text = { 0 };
    char *output = codex_text (line, item, "aggregatedOutput"),
         *error = codex_text (line, mur_json_get (line, item, "error"), "message"),
         *status = codex_text (line, item, "status");
    if (output != NULL)
        return output;
    mur_node content = mur_json_get (line, mur_json_get (line, item, "result"), "content");
    for (mur_node n = mur_json_first (line, content); n >= 0; n = mur_json_next (line, n)) {
        char *part = codex_text (line, n, "text");
        mur_text_puts (&text, part != NULL ? part : "[content]");
    }
    if (error != NULL)
        mur_text_puts (&text, error);
    if (text.data == NULL)
        mur_text_puts (&text, status != NULL ? status : "");
    return text.data;
}

static void
on_item_completed (const struct mur_json *line, mur_node item)
{
    mur_node type = mur_json_get (line, item, "type"), status = mur_json_get (line, item, "status"),
             code = mur_json_get (line, item, "exitCode");
    char *text = codex_text (line, item, "text");
    struct item *call = take_call (line, item);
    if (call != NULL && call->name != NULL) {
        bool has_failed =
            mur_json_is (line, status, "failed") || mur_json_is (line, status, "declined") ||
            (mur_json_kind (line, code) == MUR_JSON_NUMBER && mur_json_int (line, code, 0) != 0);
        mur_event_result (call->id, output_of (line, item), has_failed);
        call->name = NULL; /* it is over */
    } else if (mur_json_is (line, type, "agentMessage") && text != NULL) {
        run.last_message = text;
        mur_event_text (text);
    }
}

/* --- what it asks --- */

static struct mur_text
answer_to (const struct mur_json *line, const char *rest)
{
    struct mur_text answer = { 0 };
    mur_text_printf (&answer, "{\"id\":%s,%s",
                     mur_harness_value (line, mur_json_get (line, 0, "id")), rest);
    return answer;
}

/* "/bin/bash -lc TEXT", its own wrapping, without the folder: a path could be any program. */
static char *
shell_line (const char *command)
{
    static const char *const shells[] = { "bash", "sh", "zsh" };
    const char *space = command != NULL ? strchr (command, ' ') : NULL, *name = command;
    for (const char *at = command; space != NULL && at < space; at++)
        if (*at == '/')
            name = at + 1;
    for (size_t i = 0; space != NULL && i < sizeof shells / sizeof *shells; i++) {
        size_t len = strlen (shells[i]);
        const char *rest = strncmp (space, " -c ", 4) == 0    ? space + 4
                           : strncmp (space, " -lc ", 5) == 0 ? space + 5
                                                              : NULL;
        if (rest != NULL && (size_t)(space - name) == len && strncmp (name, shells[i], len) == 0)
            return mur_format ("%s -c %s", shells[i], rest);
    }
    return command != NULL ? mur_format ("%s", command) : NULL;
}

static void
on_approval (const struct mur_json *line, mur_node params)
{
    char *id = codex_text (line, params, "itemId"), *command = codex_text (line, params, "command"),
         *reason = codex_text (line, params, "reason");
    const struct item *item = known (id);
    struct mur_text allow = answer_to (line, "\"result\":{\"decision\":\"accept\"}}\n"),
                    refuse = answer_to (line, "\"result\":{\"decision\":\"decline\"},\"why\":"),
                    input = { 0 };
    mur_text_puts (&input, "{");
    mur_text_string (&input, "command", command);
    mur_text_string (&input, "reason", reason);
    mur_text_puts (&input, "}");
    mur_event_permission (&(struct mur_permission){
        .id = id,
        .tool = item != NULL && item->name != NULL ? item->name
                : command != NULL                  ? "command_execution"
                                                   : "file_change",
        .input = item != NULL ? item->input : input.data,
        .command = shell_line (command),
        .is_asked_anyway = run.asks_by_itself,
        .allow = allow.data,
        .refuse = { refuse.data, "}\n" },
    });
}

static void
on_questions (const struct mur_json *line, mur_node params)
{
    struct mur_question questions[QUESTIONS_MAX];
    const char *parts[QUESTIONS_MAX + 1], *options[QUESTIONS_MAX][OPTIONS_MAX + 1];
    struct mur_text part = answer_to (line, "\"result\":{\"answers\":{"),
                    refuse = answer_to (line, "\"error\":{\"code\":-32000,\"message\":");
    size_t count = 0;
    for (mur_node list = mur_json_get (line, params, "questions"), n = mur_json_first (line, list);
         n >= 0 && count < QUESTIONS_MAX; n = mur_json_next (line, n)) {
        char *text = codex_text (line, n, "question"), *id = codex_text (line, n, "id");
        size_t offered = 0;
        if (text == NULL || id == NULL)
            continue;
        for (mur_node all = mur_json_get (line, n, "options"), o = mur_json_first (line, all);
             o >= 0 && offered < OPTIONS_MAX; o = mur_json_next (line, o)) {
            char *label = codex_text (line, o, "label");
            if (label != NULL)
                options[count][offered++] = label;
        }
        options[count][offered] = NULL;
        questions[count] = (struct mur_question){ text, options[count] };
        if (count > 0)
            mur_text_puts (&part, "]},");
        mur_text_json (&part, id);
        mur_text_puts (&part, ":{\"answers\":[");
        parts[count++] = part.data;
        part = (struct mur_text){ 0 };
    }
    mur_text_puts (&part, count > 0 ? "]}}}}\n" : "}}}\n");
    parts[count] = part.data;
    mur_event_questions (questions, count, parts, (const char *const[2]){ refuse.data, "}}\n" });
}

/* A call of the capsule's tools is asked about by its own gates; no other server is there. */
static void
on_elicitation (const struct mur_json *line, mur_node params)
{
    bool is_ours = run.launch.bridge != NULL &&
                   mur_json_is (line, mur_json_get (line, params, "serverName"), "murmur");
    struct mur_text answer =
        answer_to (line, is_ours ? "\"result\":{\"action\":\"accept\",\"content\":{}}"
                                 : "\"result\":{\"action\":"
                                   "\"decline\"}");
    send (&answer, "}\n");
}

static void
on_request (const struct mur_json *line, mur_node method)
{
    static const struct {
        const char *method;
        void (*take) (const struct mur_json *line, mur_node params);
    } requests[] = {
        { "item/commandExecution/requestApproval", on_approval },
        { "item/fileChange/requestApproval", on_approval },
        { "item/tool/requestUserInput", on_questions },
        { "mcpServer/elicitation/request", on_elicitation },
    };
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        if (mur_json_is (line, method, requests[i].method)) {
            requests[i].take (line, mur_json_get (line, 0, "params"));
            return;
        }
    struct mur_text answer =
        answer_to (line, "\"error\":{\"code\":-32601,\"message\":\"it is not offered here\"}");
    send (&answer, "}\n");
    mur_event_note (
        mur_format ("codex asked for what is not offered: %s", mur_json_text (line, method)));
}

/* --- what it says meanwhile --- */

/* Told for the whole thread, which is how murmur.yaml says that this driver counts. */
static void
on_usage (const struct mur_json *line, mur_node params)
{
    struct mur_process_usage used = { 0 };
    codex_usage (line, mur_json_get (line, mur_json_get (line, params, "tokenUsage"), "total"),
                 &used);
    mur_event_usage (&used);
}

static void
on_turn_completed (const struct mur_json *line, mur_node params)
{
    mur_node turn = mur_json_get (line, params, "turn"),
             status = mur_json_get (line, turn, "status");
    char *message = codex_text (line, mur_json_get (line, turn, "error"), "message");
    if (mur_json_is (line, status, "interrupted"))
        mur_event_turn_failed (MUR_TURN_CANCELED, "interrupted");
    else if (mur_json_is (line, status, "failed"))
        mur_event_turn_failed (mur_harness_failure (0, message), "%s",
                               message != NULL ? message : "the turn failed");
    else
        mur_event_turn_end (run.last_message != NULL ? run.last_message : "");
}

static void
on_error (const struct mur_json *line, mur_node params)
{
    char *message = codex_text (line, mur_json_get (line, params, "error"), "message");
    if (message == NULL)
        return;
    const char *number = strpbrk (message, "123456789");
    if (mur_json_bool (line, mur_json_get (line, params, "willRetry"), false)) {
        mur_event_retry (number != NULL ? (uint32_t)strtoul (number, NULL, 10) : 1, message);
        return;
    }
    run.last_error = message;
    mur_event_note (message);
}

static void
on_delta (const struct mur_json *line, mur_node params, bool is_thought)
{
    char *delta = codex_text (line, params, "delta");
    if (delta != NULL)
        (is_thought ? mur_event_thinking_delta : mur_event_text_delta) (delta);
}

static void
on_notification (const struct mur_json *line, mur_node method)
{
    mur_node params = mur_json_get (line, 0, "params"), item = mur_json_get (line, params, "item");
    if (mur_json_is (line, method, "item/started"))
        (void)take_call (line, item);
    else if (mur_json_is (line, method, "item/completed"))
        on_item_completed (line, item);
    else if (mur_json_is (line, method, "item/agentMessage/delta"))
        on_delta (line, params, false);
    else if (mur_json_is (line, method, "item/reasoning/textDelta") ||
             mur_json_is (line, method, "item/reasoning/summaryTextDelta"))
        on_delta (line, params, true);
    else if (mur_json_is (line, method, "thread/tokenUsage/updated"))
        on_usage (line, params);
    else if (mur_json_is (line, method, "turn/completed"))
        on_turn_completed (line, params);
    else if (mur_json_is (line, method, "error"))
        on_error (line, params);
    else if (mur_json_is (line, method, "warning") || mur_json_is (line, method, "configWarning")) {
        char *message = codex_text (line, params, "message");
        if (message != NULL)
            mur_event_note (message);
    }
}

void
codex_server_line (const struct mur_json *line, const char *raw, size_t len)
{
    mur_node id = mur_json_get (line, 0, "id"), method = mur_json_get (line, 0, "method");
    bool has_id =
        mur_json_kind (line, id) == MUR_JSON_NUMBER || mur_json_kind (line, id) == MUR_JSON_STRING;
    if (mur_json_kind (line, method) == MUR_JSON_STRING && has_id)
        on_request (line, method);
    else if (mur_json_kind (line, method) == MUR_JSON_STRING)
        on_notification (line, method);
    else if (mur_json_kind (line, id) == MUR_JSON_NUMBER)
        on_answer (line, (int)mur_json_int (line, id, 0));
    else if (len > 0)
        mur_event_note (mur_format ("%.*s", (int)mur_utf8_prefix (raw, len, 1000), raw));
}

const char *
codex_server_error (void)
{
    return run.last_error;
}
