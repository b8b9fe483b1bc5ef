/* SPDX-License-Identifier: Apache-2.0
 *
 * std/driver-openai: asks a provider, or a local server, that speaks Chat Completions (README.md
 * says its config).
 *
 * It turns the runtime's request into the provider's and the answer back; sending, failing and
 * streaming are murmur_model.h's. Servers differ in what they leave out of an answer, so every
 * member is optional here until the answer is handed over.
 */
#include <stdlib.h>
#include <string.h>

#include "murmur_model.h"

/* Where servers put what the model thought, in the order they are looked for. */
static const char *const reasoning_fields[] = { "reasoning_content", "reasoning" };

#define FIELD_COUNT (sizeof reasoning_fields / sizeof *reasoning_fields)

/* --- The request --- */

struct request {
    const struct mur_json *json;
    struct mur_text text;
    bool returns_reasoning;
};

static mur_node
member (const struct request *r, mur_node object, const char *key)
{
    return mur_json_get (r->json, object, key);
}

/* What the blocks of a type hold under a key, one line after the other. */
static char *
joined (const struct request *r, mur_node content, const char *type, const char *key)
{
    struct mur_text whole = { 0 };
    for (mur_node b = mur_json_first (r->json, content); b >= 0; b = mur_json_next (r->json, b)) {
        char *text =
            mur_block_is (r->json, b, type) ? mur_json_text (r->json, member (r, b, key)) : NULL;
        if (text != NULL && whole.len > 0)
            mur_text_puts (&whole, "\n");
        if (text != NULL)
            mur_text_puts (&whole, text);
        free (text);
    }
    return whole.data;
}

static void
open_message (struct request *r, const char *role)
{
    mur_text_comma (&r->text);
    mur_text_puts (&r->text, "{");
    mur_text_string (&r->text, "role", role);
}

/* Text alone goes as a string, which every server reads; anything else as the parts it came in. */
static void
add_content (struct request *r, mur_node content)
{
    bool is_text = true;
    for (mur_node b = mur_json_first (r->json, content); b >= 0; b = mur_json_next (r->json, b))
        is_text = is_text && mur_block_is (r->json, b, "text");
    if (! is_text) {
        mur_text_node (&r->text, "content", r->json, content);
        return;
    }
    char *text = joined (r, content, "text", "text");
    mur_text_string (&r->text, "content", text != NULL ? text : "");
    free (text);
}

static void
add_call (struct request *r, mur_node block)
{
    size_t len;
    const char *input = mur_json_raw (r->json, member (r, block, "input"), &len);
    mur_text_comma (&r->text);
    mur_text_puts (&r->text, "{");
    mur_text_node (&r->text, "id", r->json, member (r, block, "id"));
    mur_text_puts (&r->text, ",\"type\":\"function\",\"function\":{");
    mur_text_node (&r->text, "name", r->json, member (r, block, "name"));
    mur_text_key (&r->text, "arguments");
    mur_text_json_bytes (&r->text, input, len);
    mur_text_puts (&r->text, "}");
    mur_text_node (&r->text, "extra_content", r->json, member (r, block, "extra_content"));
    mur_text_puts (&r->text, "}");
}

/* Thinking goes back under the name it came with, and only into the task it was for. */
static void
add_reasoning (struct request *r, mur_node content)
{
    for (mur_node b = mur_json_first (r->json, content); b >= 0; b = mur_json_next (r->json, b))
        for (size_t i = 0; i < FIELD_COUNT; i++)
            if (mur_block_is (r->json, b, "thinking") &&
                mur_json_is (r->json, member (r, b, "field"), reasoning_fields[i])) {
                char *text = joined (r, content, "thinking", "thinking");
                mur_text_string (&r->text, reasoning_fields[i], text);
                free (text);
                return;
            }
}

static void
add_model_message (struct request *r, mur_node content, bool is_of_this_task)
{
    size_t calls = 0;
    char *text = joined (r, content, "text", "text");
    for (mur_node b = mur_json_first (r->json, content); b >= 0; b = mur_json_next (r->json, b))
        calls += mur_block_is (r->json, b, "tool_call");
    if (text == NULL && calls == 0)
        return;
    open_message (r, "assistant");
    if (text != NULL)
        mur_text_string (&r->text, "content", text);
    else
        mur_text_puts (&r->text, ",\"content\":null");
    if (r->returns_reasoning && is_of_this_task)
        add_reasoning (r, content);
    if (calls > 0) {
        mur_text_key (&r->text, "tool_calls");
        mur_text_puts (&r->text, "[");
        for (mur_node b = mur_json_first (r->json, content); b >= 0; b = mur_json_next (r->json, b))
            if (mur_block_is (r->json, b, "tool_call"))
                add_call (r, b);
        mur_text_puts (&r->text, "]");
    }
    mur_text_puts (&r->text, "}");
    free (text);
}

static void
add_messages (struct request *r)
{
    mur_node messages = member (r, 0, "messages");
    mur_node last_user = -1;
    char *system = mur_json_text (r->json, member (r, 0, "system"));
    mur_text_key (&r->text, "messages");
    mur_text_puts (&r->text, "[");
    if (system != NULL && *system != '\0') {
        open_message (r, "system");
        mur_text_string (&r->text, "content", system);
        mur_text_puts (&r->text, "}");
    }
    free (system);
    for (mur_node m = mur_json_first (r->json, messages); m >= 0; m = mur_json_next (r->json, m))
        if (mur_json_is (r->json, member (r, m, "role"), "user"))
            last_user = m;
    for (mur_node m = mur_json_first (r->json, messages); m >= 0; m = mur_json_next (r->json, m)) {
        mur_node role = member (r, m, "role"), content = member (r, m, "content");
        if (mur_json_is (r->json, role, "assistant")) {
            add_model_message (r, content, m > last_user);
            continue;
        }
        bool is_result = mur_json_is (r->json, role, "tool");
        open_message (r, is_result ? "tool" : "user");
        if (is_result)
            mur_text_node (&r->text, "tool_call_id", r->json, member (r, m, "tool_call_id"));
        add_content (r, content);
        mur_text_puts (&r->text, "}");
    }
    mur_text_puts (&r->text, "]");
}

/* The provider's own models want members that other servers refuse. `dialect` decides, else the
 * model's name. */
static bool
is_openai (const struct mur_json *config, const char *model)
{
    static const char *const names[] = { "gpt-", "chatgpt-", "o1", "o3", "o4" };
    mur_node dialect = mur_json_get (config, 0, "dialect");
    if (mur_json_kind (config, dialect) == MUR_JSON_STRING)
        return mur_json_is (config, dialect, "openai");
    for (size_t i = 0; model != NULL && i < sizeof names / sizeof *names; i++)
        if (strncmp (model, names[i], strlen (names[i])) == 0)
            return strncmp (model, "gpt-oss", 7) != 0;
    return false;
}

static const char *const own_members[] = { "model",    "max_tokens", "max_completion_tokens",
                                           "messages", "tools",      "stream",
                                           "n",        NULL };

static void
add_request (struct request *r, const struct mur_json *config)
{
    char *model = mur_json_text (r->json, member (r, 0, "model"));
    bool has_own_names = is_openai (config, model);
    mur_text_string (&r->text, "model", model);
    mur_text_node (&r->text, has_own_names ? "max_completion_tokens" : "max_tokens", r->json,
                   member (r, 0, "max_tokens"));
    if (has_own_names)
        mur_text_node (&r->text, "prompt_cache_key", r->json, member (r, 0, "prompt_cache_key"));
    mur_driver_tools (r->json, &r->text, "{\"type\":\"function\",\"function\":{", "parameters",
                      "}}");
    add_messages (r);
    if (mur_driver_streams (config)) {
        mur_text_puts (&r->text, ",\"stream\":true");
        if (mur_json_get (config, mur_json_get (config, 0, "request"), "stream_options") < 0)
            mur_text_puts (&r->text, ",\"stream_options\":{\"include_usage\":true}");
    }
    free (model);
}

/* --- The answer --- */

/* Numbers of the blocks that are not calls; a call has the index the provider gave it. */
#define TEXT_NUMBER     -1
#define THINKING_NUMBER -2

static const char *const stop_reasons[][2] = {
    { "stop", "end_turn" },
    { "tool_calls", "tool_call" },
    { "function_call", "tool_call" },
    { "length", "max_tokens" },
    { NULL, NULL },
};

/* Prompt tokens count those read from a cache too; the runtime wants them apart. */
static void
take_usage (struct mur_answer *answer, const struct mur_json *json)
{
    mur_node usage = mur_json_get (json, 0, "usage");
    mur_node prompt = mur_json_get (json, usage, "prompt_tokens_details");
    mur_node completion = mur_json_get (json, usage, "completion_tokens_details");
    mur_node input = mur_json_get (json, usage, "prompt_tokens");
    if (mur_json_int (json, input, -1) < 0)
        return;
    mur_answer_usage (answer, MUR_USAGE_INPUT, json, input);
    mur_answer_usage (answer, MUR_USAGE_OUTPUT, json,
                      mur_json_get (json, usage, "completion_tokens"));
    mur_answer_usage (answer, MUR_USAGE_CACHED, json,
                      mur_json_get (json, usage, "prompt_cache_hit_tokens"));
    mur_answer_usage (answer, MUR_USAGE_CACHED, json, mur_json_get (json, prompt, "cached_tokens"));
    mur_answer_usage (answer, MUR_USAGE_THINKING, json,
                      mur_json_get (json, completion, "reasoning_tokens"));
    int64_t cached = answer->usage[MUR_USAGE_CACHED];
    if (cached > 0 && cached <= answer->usage[MUR_USAGE_INPUT])
        answer->usage[MUR_USAGE_INPUT] -= cached;
}

static void
grow (struct mur_answer *answer, enum mur_block_kind kind, char *piece, const char *field)
{
    int64_t number = kind == MUR_BLOCK_TEXT ? TEXT_NUMBER : THINKING_NUMBER;
    if (piece != NULL && *piece != '\0') {
        struct mur_block *block = mur_answer_block (answer, kind, number);
        if (field != NULL && block->more.len == 0)
            mur_text_string (&block->more, "field", field);
        mur_block_grow (block, piece);
    }
    free (piece);
}

/* Content is a string, or parts: {"type": "text", "text"}, {"type": "thinking", "thinking": parts}.
 */
static void
take_content (struct mur_answer *answer, const struct mur_json *json, mur_node content,
              enum mur_block_kind kind)
{
    if (mur_json_kind (json, content) == MUR_JSON_STRING)
        grow (answer, kind, mur_json_text (json, content), NULL);
    if (mur_json_kind (json, content) != MUR_JSON_ARRAY)
        return;
    for (mur_node p = mur_json_first (json, content); p >= 0; p = mur_json_next (json, p)) {
        grow (answer, kind, mur_json_text (json, mur_json_get (json, p, "text")), NULL);
        take_content (answer, json, mur_json_get (json, p, "thinking"), MUR_BLOCK_THINKING);
    }
}

static void
take_reasoning (struct mur_answer *answer, const struct mur_json *json, mur_node message)
{
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        char *piece = mur_json_text (json, mur_json_get (json, message, reasoning_fields[i]));
        bool is_there = piece != NULL && *piece != '\0';
        grow (answer, MUR_BLOCK_THINKING, piece, reasoning_fields[i]);
        if (is_there)
            return;
    }
}

/* The call that a piece belongs to: the one of its index, unless the piece names another. */
static struct mur_block *
call_of (struct mur_answer *answer, int64_t number, const char *id, const char *name)
{
    struct mur_block *block = mur_answer_find (answer, number);
    bool is_other = block != NULL && id != NULL && *id != '\0' && name != NULL && *name != '\0' &&
                    strcmp (block->id, id) != 0;
    return block == NULL || is_other ? mur_answer_add (answer, MUR_BLOCK_CALL, number) : block;
}

/* Messages of the request: what makes the ids below differ from turn to turn. */
static size_t turn;

/* Some servers give a call no id; the runtime and the next request need one. */
static char *
id_or_own (const struct mur_answer *answer, const char *id)
{
    return id != NULL && *id != '\0' ? mur_format ("%s", id)
                                     : mur_format ("call_%zu_%zu", turn, answer->count);
}

static void
take_call (struct mur_answer *answer, const struct mur_json *json, mur_node call, int64_t position)
{
    mur_node function = mur_json_get (json, call, "function");
    mur_node arguments = mur_json_get (json, function, "arguments");
    char *id = mur_json_text (json, mur_json_get (json, call, "id"));
    char *name = mur_json_text (json, mur_json_get (json, function, "name"));
    int64_t number = mur_json_int (json, mur_json_get (json, call, "index"), position);
    struct mur_block *block = call_of (answer, number, id, name);
    if (block->id == NULL)
        mur_block_call (block, id_or_own (answer, id), name != NULL ? name : mur_format ("%s", ""));
    else
        free (name);
    mur_block_input (block, json, arguments);
    char *piece = mur_json_text (json, arguments);
    mur_block_grow (block, piece);
    if (block->more.len == 0)
        mur_text_node (&block->more, "extra_content", json,
                       mur_json_get (json, call, "extra_content"));
    free (piece);
    free (id);
}

static void
take_message (struct mur_answer *answer, const struct mur_json *json, mur_node message)
{
    take_reasoning (answer, json, message);
    take_content (answer, json, mur_json_get (json, message, "content"), MUR_BLOCK_TEXT);
    mur_node calls = mur_json_get (json, message, "tool_calls");
    int64_t position = 0;
    for (mur_node c = mur_json_first (json, calls); c >= 0; c = mur_json_next (json, c))
        take_call (answer, json, c, position++);
    char *refusal = mur_json_text (json, mur_json_get (json, message, "refusal"));
    if (refusal != NULL && *refusal != '\0')
        mur_answer_fail (answer, MUR_TRANSIENT_NO, "the model refused to answer: %.500s", refusal);
    free (refusal);
}

/* Some servers say `stop` though they call; what they did counts. */
static void
take_stop (struct mur_answer *answer, const struct mur_json *json, mur_node choice)
{
    mur_node reason = mur_json_get (json, choice, "finish_reason");
    mur_answer_stop (answer, json, reason, stop_reasons);
    if (mur_json_is (json, reason, "content_filter"))
        mur_answer_fail (answer, MUR_TRANSIENT_NO,
                         "the provider's content filter ended the answer");
    if (! mur_json_is (json, reason, "stop"))
        return;
    for (size_t i = 0; i < answer->count; i++)
        if (answer->blocks[i].kind == MUR_BLOCK_CALL) {
            free (answer->stop_reason);
            answer->stop_reason = mur_format ("tool_call");
            return;
        }
}

static void
take_choice (struct mur_answer *answer, const struct mur_json *json, const char *key)
{
    mur_node choice = mur_json_at (json, mur_json_get (json, 0, "choices"), 0);
    take_message (answer, json, mur_json_get (json, choice, key));
    take_stop (answer, json, choice);
    take_usage (answer, json);
}

static void
take_event (struct mur_answer *answer, const struct mur_json *json)
{
    take_choice (answer, json, "delta");
}

static void
take_whole (struct mur_answer *answer, const struct mur_json *json)
{
    take_choice (answer, json, "message");
}

/* --- A call --- */

static const struct mur_provider provider = {
    .take_event = take_event,
    .take_whole = take_whole,
    .path = "/chat/completions",
    .version = "/v1",
    .is_versioned = true,
    .own_members = own_members,
};

void
mur_tool (const struct mur_input *in, struct mur_result *out)
{
    struct mur_json *config = mur_driver_config ();
    struct request r = {
        .json = in->json,
        .returns_reasoning =
            mur_json_bool (config, mur_json_get (config, 0, "return_reasoning"), true),
    };
    turn = mur_json_count (in->json, mur_json_get (in->json, 0, "messages"));
    mur_text_puts (&r.text, "{");
    add_request (&r, config);
    if (! mur_driver_request_members (&provider, config, &r.text, out))
        return;
    mur_text_puts (&r.text, "}");
    mur_provider_call (&provider, config, &r.text, out);
}
