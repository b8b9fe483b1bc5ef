/* SPDX-License-Identifier: Apache-2.0
 *
 * Driver for tests: asks a provider that speaks the Messages form, streamed, at
 * MURMUR_INFERENCE_ENDPOINT + /v1/messages.
 *
 * It turns the runtime's request into the provider's and the answer back. `driver.config` may say
 * `stream: false`, `path`, and `headers`, a mapping of further request headers. Whatever the
 * provider refuses becomes a failed call that quotes it.
 */
#include <stdlib.h>
#include <string.h>

#include "murmur_sdk.h"

#define ANSWER_LIMIT_BYTES (16u << 20)
#define MAX_BLOCKS         256
#define MAX_HEADERS        16

/* ---- The request ---- */

static void
add_raw (struct mur_text *to, const struct mur_json *json, mur_node node)
{
    size_t len;
    const char *raw = mur_json_raw (json, node, &len);
    mur_text_add (to, raw, len);
}

static void
add_key (struct mur_text *to, const char *key, const struct mur_json *json, mur_node node)
{
    if (node < 0)
        return;
    mur_text_printf (to, "%s\"%s\":", to->data[to->len - 1] == '{' ? "" : ",", key);
    add_raw (to, json, node);
}

static void
add_block (struct mur_text *to, const struct mur_json *json, mur_node block)
{
    if (! mur_json_is (json, mur_json_get (json, block, "type"), "tool_call")) {
        add_raw (to, json, block);
        return;
    }
    mur_text_puts (to, "{\"type\":\"tool_use\"");
    static const char *const keys[] = { "id", "name", "input" };
    for (size_t i = 0; i < 3; i++)
        add_key (to, keys[i], json, mur_json_get (json, block, keys[i]));
    mur_text_puts (to, "}");
}

static void
add_tool_result (struct mur_text *to, const struct mur_json *json, mur_node message)
{
    mur_text_puts (to, "{\"type\":\"tool_result\"");
    add_key (to, "tool_use_id", json, mur_json_get (json, message, "tool_call_id"));
    add_key (to, "content", json, mur_json_get (json, message, "content"));
    if (mur_json_bool (json, mur_json_get (json, message, "is_error"), false))
        mur_text_puts (to, ",\"is_error\":true");
    mur_text_puts (to, "}");
}

/* The results of one turn's calls form one user message. */
static void
add_messages (struct mur_text *to, const struct mur_json *json)
{
    mur_node messages = mur_json_get (json, 0, "messages");
    bool is_in_results = false;
    mur_text_puts (to, ",\"messages\":[");
    for (mur_node m = mur_json_first (json, messages); m >= 0; m = mur_json_next (json, m)) {
        bool is_result = mur_json_is (json, mur_json_get (json, m, "role"), "tool");
        if (is_in_results && ! is_result)
            mur_text_puts (to, "]}");
        if (to->data[to->len - 1] == '}')
            mur_text_puts (to, ",");
        if (is_result && ! is_in_results)
            mur_text_puts (to, "{\"role\":\"user\",\"content\":[");
        is_in_results = is_result;
        if (is_result) {
            add_tool_result (to, json, m);
            continue;
        }
        mur_text_puts (to, "{");
        add_key (to, "role", json, mur_json_get (json, m, "role"));
        mur_text_puts (to, ",\"content\":[");
        mur_node content = mur_json_get (json, m, "content");
        for (mur_node b = mur_json_first (json, content); b >= 0; b = mur_json_next (json, b)) {
            if (to->data[to->len - 1] == '}')
                mur_text_puts (to, ",");
            add_block (to, json, b);
        }
        mur_text_puts (to, "]}");
    }
    mur_text_puts (to, is_in_results ? "]}]" : "]");
}

static void
add_tools (struct mur_text *to, const struct mur_json *json)
{
    mur_node tools = mur_json_get (json, 0, "tools");
    if (mur_json_count (json, tools) == 0)
        return;
    mur_text_puts (to, ",\"tools\":[");
    for (mur_node t = mur_json_first (json, tools); t >= 0; t = mur_json_next (json, t)) {
        mur_text_puts (to, to->data[to->len - 1] == '}' ? ",{" : "{");
        add_key (to, "name", json, mur_json_get (json, t, "name"));
        add_key (to, "description", json, mur_json_get (json, t, "description"));
        add_key (to, "input_schema", json, mur_json_get (json, t, "parameters"));
        mur_text_puts (to, "}");
    }
    mur_text_puts (to, "]");
}

static struct mur_text
provider_request (const struct mur_json *json, bool is_stream)
{
    struct mur_text to = { 0 };
    mur_text_puts (&to, "{");
    static const char *const keys[] = { "model", "max_tokens", "system" };
    for (size_t i = 0; i < 3; i++)
        add_key (&to, keys[i], json, mur_json_get (json, 0, keys[i]));
    add_messages (&to, json);
    add_tools (&to, json);
    mur_text_puts (&to, is_stream ? ",\"stream\":true}" : "}");
    return to;
}

/* ---- The answer ---- */

enum block_kind {
    BLOCK_NONE,
    BLOCK_TEXT,
    BLOCK_THINKING,
    BLOCK_TOOL,
    BLOCK_OTHER,
};

struct block {
    enum block_kind kind;
    struct mur_text text; /* text, thinking, a tool's input, or the whole block */
    char *id;
    char *name;
    char *signature;
};

struct answer {
    struct block blocks[MAX_BLOCKS];
    char *stop_reason;
    int64_t usage[4]; /* in the order of usage_names; -1: not told */
    char *error;
};

static const struct {
    const char *provider;
    const char *ours;
} usage_names[] = {
    { "input_tokens", "input_tokens" },
    { "output_tokens", "output_tokens" },
    { "cache_read_input_tokens", "cached_tokens" },
    { "cache_creation_input_tokens", "cache_write_tokens" },
};

static void
take_usage (struct answer *answer, const struct mur_json *json, mur_node usage)
{
    for (size_t i = 0; i < 4; i++)
        answer->usage[i] = mur_json_int (json, mur_json_get (json, usage, usage_names[i].provider),
                                         answer->usage[i]);
}

static struct block *
start_block (struct answer *answer, int64_t index, const struct mur_json *json, mur_node from)
{
    static const struct {
        const char *type;
        enum block_kind kind;
    } kinds[] = { { "text", BLOCK_TEXT },
                  { "thinking", BLOCK_THINKING },
                  { "tool_use", BLOCK_TOOL } };
    if (index < 0 || index >= MAX_BLOCKS)
        return NULL;
    struct block *block = &answer->blocks[index];
    block->kind = BLOCK_OTHER;
    for (size_t i = 0; i < 3; i++)
        if (mur_json_is (json, mur_json_get (json, from, "type"), kinds[i].type))
            block->kind = kinds[i].kind;
    block->id = mur_json_text (json, mur_json_get (json, from, "id"));
    block->name = mur_json_text (json, mur_json_get (json, from, "name"));
    block->signature = mur_json_text (json, mur_json_get (json, from, "signature"));
    if (block->kind == BLOCK_TOOL)
        mur_call_started (block->id != NULL ? block->id : "",
                          block->name != NULL ? block->name : "");
    if (block->kind == BLOCK_OTHER)
        add_raw (&block->text, json, from);
    return block;
}

static void
grow_block (struct block *block, const char *piece)
{
    if (piece == NULL)
        return;
    mur_text_puts (&block->text, piece);
    if (block->kind == BLOCK_TEXT)
        mur_emit (piece, strlen (piece));
    else if (block->kind == BLOCK_THINKING)
        mur_emit_thinking (piece, strlen (piece));
    else if (block->kind == BLOCK_TOOL && block->id != NULL)
        mur_call_bytes (block->id, block->text.len);
}

/* One event of the stream. */
static void
take_event (struct answer *answer, const char *data, size_t len)
{
    struct mur_json *json = mur_json_parse (data, len);
    mur_node type = mur_json_get (json, 0, "type");
    int64_t index = mur_json_int (json, mur_json_get (json, 0, "index"), -1);
    mur_node delta = mur_json_get (json, 0, "delta");
    if (mur_json_is (json, type, "message_start")) {
        take_usage (answer, json, mur_json_get (json, mur_json_get (json, 0, "message"), "usage"));
    } else if (mur_json_is (json, type, "content_block_start")) {
        start_block (answer, index, json, mur_json_get (json, 0, "content_block"));
    } else if (mur_json_is (json, type, "content_block_delta") && index >= 0 &&
               index < MAX_BLOCKS) {
        static const char *const pieces[] = { "text", "thinking", "partial_json" };
        for (size_t i = 0; i < 3; i++) {
            char *piece = mur_json_text (json, mur_json_get (json, delta, pieces[i]));
            grow_block (&answer->blocks[index], piece);
            free (piece);
        }
        mur_node signature = mur_json_get (json, delta, "signature");
        if (signature >= 0)
            answer->blocks[index].signature = mur_json_text (json, signature);
    } else if (mur_json_is (json, type, "message_delta")) {
        answer->stop_reason = mur_json_text (json, mur_json_get (json, delta, "stop_reason"));
        take_usage (answer, json, mur_json_get (json, 0, "usage"));
    } else if (mur_json_is (json, type, "error")) {
        answer->error =
            mur_json_text (json, mur_json_get (json, mur_json_get (json, 0, "error"), "message"));
    }
    mur_json_free (json);
}

/* Hands each `data:` line of the stream on; what is left of a line stays in the buffer. */
static void
take_lines (struct answer *answer, struct mur_text *buffer)
{
    size_t done = 0;
    for (char *newline;
         (newline = memchr (buffer->data + done, '\n', buffer->len - done)) != NULL;) {
        const char *line = buffer->data + done;
        if (strncmp (line, "data:", 5) == 0)
            take_event (answer, line + 5, (size_t)(newline - line) - 5);
        done = (size_t)(newline - buffer->data) + 1;
    }
    memmove (buffer->data, buffer->data + done, buffer->len - done);
    buffer->len -= done;
}

static void
take_whole (struct answer *answer, const struct mur_json *json)
{
    mur_node content = mur_json_get (json, 0, "content");
    int64_t index = 0;
    for (mur_node b = mur_json_first (json, content); b >= 0; b = mur_json_next (json, b)) {
        static const char *const pieces[] = { "text", "thinking" };
        struct block *block = start_block (answer, index++, json, b);
        for (size_t i = 0; block != NULL && i < 2; i++) {
            char *piece = mur_json_text (json, mur_json_get (json, b, pieces[i]));
            grow_block (block, piece);
            free (piece);
        }
        if (block != NULL && block->kind == BLOCK_TOOL)
            add_raw (&block->text, json, mur_json_get (json, b, "input"));
    }
    answer->stop_reason = mur_json_text (json, mur_json_get (json, 0, "stop_reason"));
    take_usage (answer, json, mur_json_get (json, 0, "usage"));
}

static void
add_answer_block (struct mur_text *to, const struct block *block)
{
    const char *text = block->text.data != NULL ? block->text.data : "";
    switch (block->kind) {
    case BLOCK_TEXT:
    case BLOCK_THINKING: {
        const char *type = block->kind == BLOCK_TEXT ? "text" : "thinking";
        mur_text_printf (to, "{\"type\":\"%s\",\"%s\":", type, type);
        mur_text_json (to, text);
        if (block->signature != NULL) {
            mur_text_puts (to, ",\"signature\":");
            mur_text_json (to, block->signature);
        }
        mur_text_puts (to, "}");
        break;
    }
    case BLOCK_TOOL:
        mur_text_puts (to, "{\"type\":\"tool_call\",\"id\":");
        mur_text_json (to, block->id != NULL ? block->id : "");
        mur_text_puts (to, ",\"name\":");
        mur_text_json (to, block->name != NULL ? block->name : "");
        mur_text_printf (to, ",\"input\":%s}", *text != '\0' ? text : "{}");
        break;
    default:
        mur_text_puts (to, text);
    }
}

static const char *
our_stop_reason (const char *theirs)
{
    static const struct {
        const char *theirs;
        const char *ours;
    } reasons[] = { { "tool_use", "tool_call" }, { "stop_sequence", "end_turn" } };
    for (size_t i = 0; theirs != NULL && i < 2; i++)
        if (strcmp (theirs, reasons[i].theirs) == 0)
            return reasons[i].ours;
    return theirs != NULL ? theirs : "";
}

static void
hand_over (const struct answer *answer, struct mur_result *out)
{
    struct mur_text to = { 0 };
    mur_text_puts (&to, "{\"stop_reason\":");
    mur_text_json (&to, our_stop_reason (answer->stop_reason));
    mur_text_puts (&to, ",\"content\":[");
    for (size_t i = 0; i < MAX_BLOCKS; i++) {
        if (answer->blocks[i].kind == BLOCK_NONE)
            continue;
        if (to.data[to.len - 1] == '}')
            mur_text_puts (&to, ",");
        add_answer_block (&to, &answer->blocks[i]);
    }
    mur_text_puts (&to, "],\"usage\":{");
    for (size_t i = 0; i < 4; i++)
        if (answer->usage[i] >= 0)
            mur_text_printf (&to, "%s\"%s\":%lld", to.data[to.len - 1] == '{' ? "" : ",",
                             usage_names[i].ours, (long long)answer->usage[i]);
    mur_text_puts (&to, "}}");
    mur_passed_text (out, &to);
}

/* ---- A call ---- */

static size_t
take_headers (const struct mur_json *config, struct mur_http_header *headers)
{
    size_t count = 0;
    headers[count++] = (struct mur_http_header){ "content-type", "application/json" };
    headers[count++] = (struct mur_http_header){ "anthropic-version", "2023-06-01" };
    mur_node more = mur_json_get (config, 0, "headers");
    for (mur_node n = mur_json_first (config, more); n >= 0 && count < MAX_HEADERS;
         n = mur_json_next (config, n))
        headers[count++] =
            (struct mur_http_header){ mur_json_key (config, n), mur_json_text (config, n) };
    return count;
}

static void
refuse (struct mur_result *out, unsigned status, const struct mur_text *body)
{
    struct mur_json *json = mur_json_parse (body->data != NULL ? body->data : "", body->len);
    char *message =
        mur_json_text (json, mur_json_get (json, mur_json_get (json, 0, "error"), "message"));
    mur_failed (out, "the provider answered %u: %.500s", status,
                message != NULL ? message : "no message");
    free (message);
    mur_json_free (json);
}

static void
read_answer (struct mur_http_response *response, struct mur_result *out)
{
    static struct answer answer = { .usage = { -1, -1, -1, -1 } };
    struct mur_text body = { 0 };
    char chunk[4096];
    char *error = NULL;
    long got;
    char *type = mur_http_header (response, "content-type");
    bool is_events =
        response->status == 200 && type != NULL && strncmp (type, "text/event-stream", 17) == 0;
    while ((got = mur_http_read (response, chunk, sizeof chunk, &error)) > 0 &&
           body.len < ANSWER_LIMIT_BYTES) {
        mur_text_add (&body, chunk, (size_t)got);
        if (is_events)
            take_lines (&answer, &body);
    }
    struct mur_json *json =
        is_events || body.data == NULL ? NULL : mur_json_parse (body.data, body.len);
    if (got < 0)
        mur_failed (out, "%s", error);
    else if (response->status != 200)
        refuse (out, response->status, &body);
    else if (answer.error != NULL)
        mur_failed (out, "the provider stopped: %s", answer.error);
    else if (is_events && answer.stop_reason == NULL)
        mur_failed (out, "the provider's stream ended early");
    else if (! is_events && json == NULL)
        mur_passed (out, "%s", body.data != NULL ? body.data : "");
    else {
        if (json != NULL)
            take_whole (&answer, json);
        hand_over (&answer, out);
    }
    mur_json_free (json);
    mur_text_free (&body);
}

void
mur_tool (const struct mur_input *in, struct mur_result *out)
{
    const char *config_text = mur_env ("MURMUR_INFERENCE_DRIVER_CONFIG", "{}");
    struct mur_json *config = mur_json_parse (config_text, strlen (config_text));
    bool is_stream = mur_json_bool (config, mur_json_get (config, 0, "stream"), true);
    char *path = mur_json_text (config, mur_json_get (config, 0, "path"));
    struct mur_http_header headers[MAX_HEADERS];
    struct mur_text body = provider_request (in->json, is_stream);
    struct mur_http_request request = {
        .url = mur_format ("%s%s", mur_env ("MURMUR_INFERENCE_ENDPOINT", ""),
                           path != NULL ? path : "/v1/messages"),
        .headers = headers,
        .header_count = take_headers (config, headers),
        .body = body.data,
        .body_len = body.len,
    };
    struct mur_http_response response;
    char *error = NULL;
    if (! mur_http_open (&request, &response, &error)) {
        mur_failed (out, "%s", error);
        return;
    }
    read_answer (&response, out);
    mur_http_close (&response);
}
