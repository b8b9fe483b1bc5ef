/* SPDX-License-Identifier: Apache-2.0
 *
 * What the program asks on its control channel: whether a call may be made (can_use_tool, when its
 * permission mode does not know; hook_callback before every call, where the manifest has
 * approvals), and the questions of its tool AskUserQuestion. A person answers, or the rules of the
 * manifest; what this driver does not know is refused.
 */
#include "claude.h"

#include <stdlib.h>
#include <string.h>

#define QUESTIONS_MAX 16
#define OPTIONS_MAX   32
#define BRIDGE_PREFIX "mcp__murmur__"

/* Longer than any answer takes: whoever asks has a time of its own. */
#define HOOK_TIMEOUT_SECS "604800"

void
claude_control_begin (const struct mur_json *config, struct mur_text *input)
{
    mur_node rules = mur_json_get (config, 0, "$rules");
    if (! mur_json_bool (config, mur_json_get (config, rules, "approvals"), false))
        return;
    mur_text_puts (input, "{\"type\":\"control_request\",\"request_id\":\"murmur-begin\","
                          "\"request\":{\"subtype\":\"initialize\",\"hooks\":{\"PreToolUse\":"
                          "[{\"matcher\":null,\"timeout\":" HOOK_TIMEOUT_SECS
                          ",\"hookCallbackIds\":[\"murmur-asks\"]}]}}}\n");
}

/* --- answers --- */

/* The answer to this request up to its response, which the caller writes and closes. */
static struct mur_text
answer_to (const struct mur_json *line)
{
    struct mur_text answer = { 0 };
    mur_text_puts (&answer, "{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\"");
    mur_text_printf (&answer, ",\"request_id\":%s,\"response\":",
                     mur_harness_value (line, mur_json_get (line, 0, "request_id")));
    return answer;
}

#define CLOSED "}}\n"

static void
reply (struct mur_text *answer, const char *response)
{
    mur_text_puts (answer, response);
    mur_text_puts (answer, CLOSED);
    mur_event_reply (answer->data, answer->len);
    mur_text_free (answer);
}

/* --- may it --- */

/* One question in the form its answer goes back in. */
static void
ask (const struct mur_json *line, mur_node about, const char *tool, mur_node input, bool is_hook)
{
    static const char *const readers[] = { "Read",         "Glob",      "Grep",      "LS",
                                           "NotebookRead", "TodoWrite", "WebSearch", NULL };
    struct mur_text allow = answer_to (line), refuse = answer_to (line);
    char *text = mur_harness_object (line, input);
    bool only_reads = false;
    for (size_t i = 0; readers[i] != NULL; i++)
        only_reads |= strcmp (readers[i], tool) == 0;
    if (is_hook) {
        mur_text_puts (&allow, "{}" CLOSED);
        mur_text_puts (&refuse, "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\","
                                "\"permissionDecision\":\"deny\",\"permissionDecisionReason\":");
    } else {
        mur_text_printf (&allow, "{\"behavior\":\"allow\",\"updatedInput\":%s}" CLOSED, text);
        mur_text_puts (&refuse, "{\"behavior\":\"deny\",\"message\":");
    }
    const struct mur_permission permission = {
        .id = mur_json_text (line, mur_json_get (line, about, "tool_use_id")),
        .tool = tool,
        .input = text,
        .command = strcmp (tool, "Bash") == 0
                       ? mur_json_text (line, mur_json_get (line, input, "command"))
                       : NULL,
        .only_reads = only_reads,
        .is_asked_anyway = ! is_hook,
        .allow = allow.data,
        .refuse = { refuse.data, is_hook ? "}}" CLOSED : "}" CLOSED },
    };
    mur_event_permission (&permission);
}

/* --- what its model wants to know --- */

static void
take_options (const struct mur_json *line, mur_node question, const char **options)
{
    size_t count = 0;
    for (mur_node list = mur_json_get (line, question, "options"), n = mur_json_first (line, list);
         n >= 0 && count < OPTIONS_MAX; n = mur_json_next (line, n)) {
        char *label = mur_json_text (line, mur_json_get (line, n, "label"));
        if (label != NULL)
            options[count++] = label;
    }
    options[count] = NULL;
}

/* The input goes back with the answers in it, each under its question. */
static void
ask_person (const struct mur_json *line, mur_node input)
{
    struct mur_question questions[QUESTIONS_MAX];
    const char *parts[QUESTIONS_MAX + 1], *options[QUESTIONS_MAX][OPTIONS_MAX + 1];
    struct mur_text part = answer_to (line), refuse = answer_to (line);
    mur_node list = mur_json_get (line, input, "questions");
    size_t count = 0;
    mur_text_puts (&part, "{\"behavior\":\"allow\",\"updatedInput\":{");
    for (mur_node n = mur_json_first (line, input); n >= 0; n = mur_json_next (line, n))
        if (strcmp (mur_json_key (line, n), "answers") != 0) {
            mur_text_key (&part, mur_json_key (line, n));
            mur_text_puts (&part, mur_harness_value (line, n));
        }
    mur_text_key (&part, "answers");
    mur_text_puts (&part, "{");
    for (mur_node n = mur_json_first (line, list); n >= 0 && count < QUESTIONS_MAX;
         n = mur_json_next (line, n)) {
        char *text = mur_json_text (line, mur_json_get (line, n, "question"));
        if (text == NULL)
            continue;
        take_options (line, n, options[count]);
        questions[count] = (struct mur_question){ text, options[count] };
        if (count > 0)
            mur_text_puts (&part, ",");
        mur_text_json (&part, text);
        mur_text_puts (&part, ":");
        parts[count++] = part.data;
        part = (struct mur_text){ 0 };
    }
    mur_text_puts (&part, "}}}" CLOSED);
    parts[count] = part.data;
    mur_text_puts (&refuse, "{\"behavior\":\"deny\",\"message\":");
    mur_event_questions (questions, count, parts,
                         (const char *const[2]){ refuse.data, "}" CLOSED });
}

/* --- requests --- */

void
claude_control_request (const struct mur_json *line)
{
    mur_node request = mur_json_get (line, 0, "request"),
             subtype = mur_json_get (line, request, "subtype"),
             told = mur_json_get (line, request, "input");
    bool is_hook = mur_json_is (line, subtype, "hook_callback");
    char *tool = mur_json_text (line, is_hook ? mur_json_get (line, told, "tool_name")
                                              : mur_json_get (line, request, "tool_name"));
    mur_node input = is_hook ? mur_json_get (line, told, "tool_input") : told;
    bool is_known = tool != NULL && (is_hook || mur_json_is (line, subtype, "can_use_tool"));
    struct mur_text answer = answer_to (line);
    if (! is_known) {
        mur_event_note (mur_format ("the program asked for what this driver does not know: %s",
                                    mur_json_text (line, subtype)));
        reply (&answer, "{\"behavior\":\"deny\",\"message\":\"nobody here knows this question\"}");
    } else if (strncmp (tool, BRIDGE_PREFIX, strlen (BRIDGE_PREFIX)) == 0) {
        /* A tool of the capsule: its gates are asked when it is called. */
        char *allowed = mur_format ("{\"behavior\":\"allow\",\"updatedInput\":%s}",
                                    mur_harness_object (line, input));
        reply (&answer, is_hook ? "{}" : allowed);
    } else if (strcmp (tool, "AskUserQuestion") == 0) {
        if (is_hook)
            reply (&answer, "{}"); /* it comes again as the question it is */
        else
            ask_person (line, input);
    } else {
        ask (line, request, tool, input, is_hook);
    }
}
