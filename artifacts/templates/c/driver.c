/* SPDX-License-Identifier: Apache-2.0 */
/* A whole driver: asks a server that speaks Chat Completions, one answer at a time. The runtime's
 * request comes in as JSON and its answer goes out as JSON; the key is put into the request by the
 * runtime, after it has left this component. mur_emit is for a server that streams. */
#include <stdlib.h>
#include <string.h>

#include "murmur_sdk.h"

#define ANSWER_MAX (16u << 20)

/* The texts of a message, one line after the other. */
static char *
text_of (const struct mur_json *in, mur_node content)
{
    struct mur_text whole = { 0 };
    mur_text_puts (&whole, "");
    for (mur_node b = mur_json_first (in, content); b >= 0; b = mur_json_next (in, b)) {
        char *text = mur_json_text (in, mur_json_get (in, b, "text"));
        if (mur_json_is (in, mur_json_get (in, b, "type"), "text") && text != NULL) {
            mur_text_puts (&whole, whole.len > 0 ? "\n" : "");
            mur_text_puts (&whole, text);
        }
        free (text);
    }
    return whole.data;
}

static void
add_calls (struct mur_text *to, const struct mur_json *in, mur_node content)
{
    bool is_open = false;
    for (mur_node b = mur_json_first (in, content); b >= 0; b = mur_json_next (in, b)) {
        if (! mur_json_is (in, mur_json_get (in, b, "type"), "tool_call"))
            continue;
        size_t len;
        const char *input = mur_json_raw (in, mur_json_get (in, b, "input"), &len);
        mur_text_puts (to, is_open ? ",{" : ",\"tool_calls\":[{");
        mur_text_node (to, "id", in, mur_json_get (in, b, "id"));
        mur_text_puts (to, ",\"type\":\"function\",\"function\":{");
        mur_text_node (to, "name", in, mur_json_get (in, b, "name"));
        mur_text_key (to, "arguments");
        mur_text_json_bytes (to, input, len);
        mur_text_puts (to, "}}");
        is_open = true;
    }
    if (is_open)
        mur_text_puts (to, "]");
}

static void
add_messages (struct mur_text *to, const struct mur_json *in)
{
    char *system = mur_json_text (in, mur_json_get (in, 0, "system"));
    mur_text_puts (to, ",\"messages\":[");
    if (system != NULL) {
        mur_text_puts (to, "{\"role\":\"system\"");
        mur_text_string (to, "content", system);
        mur_text_puts (to, "}");
    }
    free (system);
    mur_node messages = mur_json_get (in, 0, "messages");
    for (mur_node m = mur_json_first (in, messages); m >= 0; m = mur_json_next (in, m)) {
        mur_node content = mur_json_get (in, m, "content");
        char *text = text_of (in, content);
        mur_text_comma (to);
        mur_text_puts (to, "{");
        mur_text_node (to, "role", in, mur_json_get (in, m, "role"));
        mur_text_string (to, "content", text);
        mur_text_node (to, "tool_call_id", in, mur_json_get (in, m, "tool_call_id"));
        add_calls (to, in, content);
        mur_text_puts (to, "}");
        free (text);
    }
    mur_text_puts (to, "]");
}

static void
add_request (struct mur_text *to, const struct mur_json *in)
{
    mur_node tools = mur_json_get (in, 0, "tools");
    mur_text_puts (to, "{");
    mur_text_node (to, "model", in, mur_json_get (in, 0, "model"));
    mur_text_node (to, "max_tokens", in, mur_json_get (in, 0, "max_tokens"));
    add_messages (to, in);
    if (mur_json_first (in, tools) >= 0) {
        mur_text_puts (to, ",\"tools\":[");
        for (mur_node t = mur_json_first (in, tools); t >= 0; t = mur_json_next (in, t)) {
            mur_text_comma (to);
            mur_text_puts (to, "{\"type\":\"function\"");
            mur_text_node (to, "function", in, t);
            mur_text_puts (to, "}");
        }
        mur_text_puts (to, "]");
    }
    mur_text_puts (to, "}");
}

static const char *
stop_of (const struct mur_json *told, mur_node choice)
{
    mur_node reason = mur_json_get (told, choice, "finish_reason");
    return mur_json_is (told, reason, "tool_calls") ? "tool_call"
           : mur_json_is (told, reason, "length")   ? "max_tokens"
           : mur_json_is (told, reason, "stop")     ? "end_turn"
                                                    : "error";
}

static void
add_blocks (struct mur_text *to, const struct mur_json *told, mur_node message)
{
    char *text = mur_json_text (told, mur_json_get (told, message, "content"));
    mur_text_puts (to, ",\"content\":[");
    if (text != NULL && *text != '\0') {
        mur_text_puts (to, "{\"type\":\"text\"");
        mur_text_string (to, "text", text);
        mur_text_puts (to, "}");
    }
    free (text);
    mur_node calls = mur_json_get (told, message, "tool_calls");
    for (mur_node c = mur_json_first (told, calls); c >= 0; c = mur_json_next (told, c)) {
        mur_node function = mur_json_get (told, c, "function");
        char *arguments = mur_json_text (told, mur_json_get (told, function, "arguments"));
        mur_text_comma (to);
        mur_text_puts (to, "{\"type\":\"tool_call\"");
        mur_text_node (to, "id", told, mur_json_get (told, c, "id"));
        mur_text_node (to, "name", told, mur_json_get (told, function, "name"));
        mur_text_key (to, "input");
        mur_text_puts (to, arguments != NULL && *arguments != '\0' ? arguments : "{}");
        mur_text_puts (to, "}");
        free (arguments);
    }
    mur_text_puts (to, "]");
}

static void
add_answer (struct mur_text *to, const struct mur_json *told)
{
    mur_node choice = mur_json_at (told, mur_json_get (told, 0, "choices"), 0);
    mur_node usage = mur_json_get (told, 0, "usage");
    mur_text_puts (to, "{");
    mur_text_string (to, "stop_reason", stop_of (told, choice));
    add_blocks (to, told, mur_json_get (told, choice, "message"));
    mur_text_puts (to, ",\"usage\":{");
    mur_text_node (to, "input_tokens", told, mur_json_get (told, usage, "prompt_tokens"));
    mur_text_node (to, "output_tokens", told, mur_json_get (told, usage, "completion_tokens"));
    mur_text_puts (to, "}}");
}

static void
add_failure (struct mur_text *to, const char *error)
{
    mur_text_puts (to, "{\"stop_reason\":\"error\",\"content\":[]");
    mur_text_string (to, "error", error);
    mur_text_puts (to, "}");
}

void
mur_tool (const struct mur_input *in, struct mur_result *out)
{
    struct mur_text body = { 0 }, told = { 0 }, answer = { 0 };
    add_request (&body, in->json);
    const struct mur_http_header headers[] = { { "content-type", "application/json" } };
    struct mur_http_request request = {
        .url = mur_format ("%s/v1/chat/completions", mur_env ("MURMUR_INFERENCE_ENDPOINT", "")),
        .headers = headers,
        .header_count = 1,
        .body = body.data,
        .body_len = body.len,
    };
    uint16_t status;
    char *error = NULL;
    struct mur_json *json = NULL;
    if (! mur_http_fetch (&request, ANSWER_MAX, &status, &told, NULL, &error))
        add_failure (&answer, error);
    else if (status != 200)
        add_failure (&answer, mur_format ("HTTP %u: %.500s", status, told.data ? told.data : ""));
    else if ((json = mur_json_parse (told.data, told.len)) == NULL)
        add_failure (&answer, "the answer is no JSON");
    else
        add_answer (&answer, json);
    mur_passed_text (out, &answer);
}
