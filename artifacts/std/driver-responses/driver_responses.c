/* SPDX-License-Identifier: Apache-2.0
 *
 * std/driver-responses: asks a provider that speaks the Responses form (README.md says its
 * config).
 *
 * It turns the runtime's request into a list of items; sending, failing and streaming are
 * murmur_model.h's, reading is answer.h's. Always true: with a continuation id the request holds
 * only what came after that answer.
 */
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "murmur_names.h"

#define ID_LIMIT_BYTES 64

struct request {
    const struct mur_json *json;
    struct mur_text text;
    bool returns_reasoning;
    bool keeps_nothing; /* config.store: false */
};

static mur_node
member (const struct request *r, mur_node object, const char *key)
{
    return mur_json_get (r->json, object, key);
}

/* --- Items --- */

static void
open_item (struct request *r, const char *type)
{
    mur_text_comma (&r->text);
    mur_text_puts (&r->text, "{");
    mur_text_string (&r->text, "type", type);
}

static void
add_message (struct request *r, const char *role, const char *part, const char *text)
{
    if (*text == '\0')
        return;
    open_item (r, "message");
    mur_text_string (&r->text, "role", role);
    mur_text_puts (&r->text, ",\"content\":[{");
    mur_text_string (&r->text, "type", part);
    mur_text_string (&r->text, "text", text);
    mur_text_puts (&r->text, "}]}");
}

/* Ids as the provider takes them, whoever made them. */
static void
add_id (struct request *r, mur_node node)
{
    char *id = mur_json_text (r->json, node);
    for (char *c = id; c != NULL && *c != '\0'; c++)
        if (strchr ("-_.:", *c) == NULL && ! (*c >= '0' && *c <= '9') &&
            ! (*c >= 'A' && *c <= 'Z') && ! (*c >= 'a' && *c <= 'z'))
            *c = '_';
    if (id != NULL && strlen (id) > ID_LIMIT_BYTES) /* the end differs, not the beginning */
        memmove (id, id + strlen (id) - ID_LIMIT_BYTES, ID_LIMIT_BYTES + 1);
    mur_text_string (&r->text, "call_id", id);
    free (id);
}

static void
add_call (struct request *r, mur_node block)
{
    size_t len;
    const char *input = mur_json_raw (r->json, member (r, block, "input"), &len);
    open_item (r, "function_call");
    add_id (r, member (r, block, "id"));
    mur_text_tool_name (&r->text, r->json, member (r, block, "name"));
    mur_text_key (&r->text, "arguments");
    mur_text_json_bytes (&r->text, input, len);
    mur_text_puts (&r->text, "}");
}

/* A reasoning item goes back while it is of use: into the task it was for, and where the provider
 * can read it. */
static void
add_reasoning (struct request *r, mur_node block)
{
    mur_node item = member (r, block, "item");
    bool is_whole =
        mur_json_kind (r->json, member (r, item, "encrypted_content")) == MUR_JSON_STRING ||
        mur_json_count (r->json, member (r, item, "content")) > 0;
    if (item < 0 || (r->keeps_nothing && ! is_whole))
        return;
    mur_text_comma (&r->text);
    mur_text_node (&r->text, NULL, r->json, item);
}

static void
add_model_items (struct request *r, mur_node content, bool is_of_this_task)
{
    for (mur_node b = mur_json_first (r->json, content); b >= 0; b = mur_json_next (r->json, b)) {
        char *text = mur_json_text (r->json, member (r, b, "text"));
        if (mur_block_is (r->json, b, "text")) {
            if (text != NULL)
                add_message (r, "assistant", "output_text", text);
        } else if (mur_block_is (r->json, b, "tool_call")) {
            add_call (r, b);
        } else if (mur_block_is (r->json, b, "thinking")) {
            if (r->returns_reasoning && is_of_this_task)
                add_reasoning (r, b);
        } else if (is_of_this_task) {
            mur_text_comma (&r->text);
            mur_text_node (&r->text, NULL, r->json, b);
        }
        free (text);
    }
}

/* What the text blocks hold, one line after the other; "" when there is none. */
static char *
joined (const struct request *r, mur_node content)
{
    struct mur_text whole = { 0 };
    for (mur_node b = mur_json_first (r->json, content); b >= 0; b = mur_json_next (r->json, b)) {
        char *text = mur_json_text (r->json, member (r, b, "text"));
        if (text != NULL && whole.len > 0)
            mur_text_puts (&whole, "\n");
        if (text != NULL)
            mur_text_puts (&whole, text);
        free (text);
    }
    mur_text_add (&whole, "", 0);
    return whole.data;
}

static void
add_input (struct request *r)
{
    mur_node messages = member (r, 0, "messages"), last_user = -1;
    bool is_kept = member (r, 0, "continuation_id") >= 0; /* the model's own words come first */
    mur_text_key (&r->text, "input");
    mur_text_puts (&r->text, "[");
    for (mur_node m = mur_json_first (r->json, messages); m >= 0; m = mur_json_next (r->json, m))
        if (mur_json_is (r->json, member (r, m, "role"), "user"))
            last_user = m;
    for (mur_node m = mur_json_first (r->json, messages); m >= 0; m = mur_json_next (r->json, m)) {
        mur_node role = member (r, m, "role"), content = member (r, m, "content");
        if (mur_json_is (r->json, role, "assistant")) {
            if (! is_kept)
                add_model_items (r, content, m > last_user);
            continue;
        }
        is_kept = false;
        char *text = joined (r, content);
        if (mur_json_is (r->json, role, "tool")) {
            open_item (r, "function_call_output");
            add_id (r, member (r, m, "tool_call_id"));
            mur_text_string (&r->text, "output", text);
            mur_text_puts (&r->text, "}");
        } else {
            add_message (r, "user", "input_text", text);
        }
        free (text);
    }
    mur_text_puts (&r->text, "]");
}

/* --- The request --- */

static bool
begins_with_one_of (const char *model, const char *const *names)
{
    for (; model != NULL && *names != NULL; names++)
        if (strncmp (model, *names, strlen (*names)) == 0)
            return true;
    return false;
}

/* Models of the form's inventor, and those among them that reason. */
static bool
is_openai (const char *model)
{
    static const char *const names[] = { "gpt-", "chatgpt-", "o1", "o3", "o4", "codex-", NULL };
    static const char *const open[] = { "gpt-oss", NULL };
    return begins_with_one_of (model, names) && ! begins_with_one_of (model, open);
}

static bool
reasons (const char *model)
{
    static const char *const names[] = { "gpt-5", "o1", "o3", "o4", "codex-", NULL };
    return begins_with_one_of (model, names);
}

static const char *const own_members[] = { "model",
                                           "max_output_tokens",
                                           "instructions",
                                           "input",
                                           "tools",
                                           "stream",
                                           "store",
                                           "previous_response_id",
                                           NULL };

static void
add_request (struct request *r, const struct mur_json *config, const char *model)
{
    char *system = mur_json_text (r->json, member (r, 0, "system"));
    mur_node store = mur_json_get (config, 0, "store");
    mur_text_string (&r->text, "model", model);
    mur_text_node (&r->text, "max_output_tokens", r->json, member (r, 0, "max_tokens"));
    if (system != NULL && *system != '\0')
        mur_text_string (&r->text, "instructions", system);
    if (mur_json_kind (config, store) == MUR_JSON_BOOL)
        mur_text_node (&r->text, "store", config, store);
    if (is_openai (model))
        mur_text_node (&r->text, "prompt_cache_key", r->json, member (r, 0, "prompt_cache_key"));
    if (r->keeps_nothing && reasons (model) &&
        mur_json_get (config, mur_json_get (config, 0, "request"), "include") < 0)
        mur_text_puts (&r->text, ",\"include\":[\"reasoning.encrypted_content\"]");
    mur_text_node (&r->text, "previous_response_id", r->json, member (r, 0, "continuation_id"));
    mur_driver_tools (r->json, &r->text, "{\"type\":\"function\",\"strict\":false", "parameters",
                      MUR_SCHEMA_COMMON, "}");
    add_input (r);
    if (mur_driver_streams (config))
        mur_text_puts (&r->text, ",\"stream\":true");
    free (system);
}

/* --- A call --- */

static const struct mur_provider provider = {
    .take_event = answer_take_event,
    .take_whole = answer_take_whole,
    .path = "/responses",
    .version = "/v1",
    .is_versioned = true,
    .own_members = own_members,
};

void
mur_tool (const struct mur_input *in, struct mur_result *out)
{
    struct mur_json *config = mur_driver_config ();
    char *model = mur_json_text (in->json, mur_json_get (in->json, 0, "model"));
    mur_node store = mur_json_get (config, 0, "store");
    struct request r = {
        .json = in->json,
        .returns_reasoning =
            mur_json_bool (config, mur_json_get (config, 0, "return_reasoning"), true),
        .keeps_nothing = ! mur_json_bool (config, store, true),
    };
    answer_continues = mur_json_bool (config, store, is_openai (model));
    if (! mur_driver_takes_content (in->json, out))
        return;
    mur_text_puts (&r.text, "{");
    add_request (&r, config, model);
    if (! mur_driver_request_members (&provider, config, &r.text, out))
        return;
    mur_text_puts (&r.text, "}");
    mur_provider_call (&provider, in->json, config, &r.text, out);
}
