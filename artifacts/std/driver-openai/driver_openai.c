/* SPDX-License-Identifier: Apache-2.0
 *
 * std/driver-openai: asks a provider, or a local server, that speaks Chat Completions (README.md
 * says its config).
 *
 * It turns the runtime's request into the provider's and the answer back; sending, failing and
 * streaming are murmur_model.h's, reading is answer.h's.
 */
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "murmur_names.h"

/* --- Dialects --- */

/* What a server takes beyond, or beside, what all of them do. */
enum dialect {
    DIALECT_COMPATIBLE,
    DIALECT_OPENAI,  /* members that other servers refuse */
    DIALECT_GEMINI,  /* schemas in few words; no empty texts */
    DIALECT_MISTRAL, /* ids of nine letters and digits */
};

/* `dialect` decides, else the model's name. */
static enum dialect
dialect_of (const struct mur_json *config, const char *model)
{
    static const struct {
        const char *word;
        enum dialect dialect;
    } words[] = { { "compatible", DIALECT_COMPATIBLE },
                  { "openai", DIALECT_OPENAI },
                  { "gemini", DIALECT_GEMINI },
                  { "mistral", DIALECT_MISTRAL } },
      models[] = { { "gpt-oss", DIALECT_COMPATIBLE }, { "gpt-", DIALECT_OPENAI },
                   { "chatgpt-", DIALECT_OPENAI },    { "o1", DIALECT_OPENAI },
                   { "o3", DIALECT_OPENAI },          { "o4", DIALECT_OPENAI },
                   { "gemini", DIALECT_GEMINI },      { "models/gemini", DIALECT_GEMINI },
                   { "mistral", DIALECT_MISTRAL },    { "ministral", DIALECT_MISTRAL },
                   { "magistral", DIALECT_MISTRAL },  { "codestral", DIALECT_MISTRAL },
                   { "devstral", DIALECT_MISTRAL },   { "pixtral", DIALECT_MISTRAL },
                   { "open-mi", DIALECT_MISTRAL } };
    mur_node asked = mur_json_get (config, 0, "dialect");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (mur_json_is (config, asked, words[i].word))
            return words[i].dialect;
    for (size_t i = 0; model != NULL && i < sizeof models / sizeof *models; i++)
        if (strncmp (model, models[i].word, strlen (models[i].word)) == 0)
            return models[i].dialect;
    return DIALECT_COMPATIBLE;
}

/* --- The request --- */

struct request {
    const struct mur_json *json;
    struct mur_text text;
    enum dialect dialect;
    bool returns_reasoning;
    char *marker;       /* what asks to remember a prompt; NULL: nothing */
    mur_node marked[2]; /* the latest two messages that are not the model's; -1: none */
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

/* A text that the provider is asked to remember is a part with a marker. */
static void
add_marked (struct request *r, const char *text)
{
    mur_text_key (&r->text, "content");
    mur_text_puts (&r->text, "[{\"type\":\"text\"");
    mur_text_string (&r->text, "text", text);
    mur_text_printf (&r->text, "%s}]", r->marker);
}

/* Text alone goes as a string, which every server reads; anything else as the parts it came in. */
static void
add_content (struct request *r, mur_node content, bool is_marked)
{
    bool is_text = true;
    for (mur_node b = mur_json_first (r->json, content); b >= 0; b = mur_json_next (r->json, b))
        is_text = is_text && mur_block_is (r->json, b, "text");
    if (! is_text) {
        mur_text_node (&r->text, "content", r->json, content);
        return;
    }
    char *text = joined (r, content, "text", "text");
    if (is_marked && text != NULL && *text != '\0')
        add_marked (r, text);
    else
        mur_text_string (&r->text, "content", text != NULL ? text : "");
    free (text);
}

/* Mistral takes ids of nine letters and digits alone; any other becomes nine that follow from it.
 */
static void
add_id (struct request *r, const char *key, mur_node node)
{
    static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char *id = mur_json_text (r->json, node);
    if (id != NULL && r->dialect == DIALECT_MISTRAL &&
        ! (strlen (id) == 9 && strspn (id, letters) == 9)) {
        char own[10] = "";
        uint64_t hash = 14695981039346656037u;
        for (const char *c = id; *c != '\0'; c++)
            hash = (hash ^ (unsigned char)*c) * 1099511628211u;
        for (size_t i = 0; i < 9; i++, hash /= 62)
            own[i] = letters[hash % 62];
        mur_text_string (&r->text, key, own);
    } else {
        mur_text_string (&r->text, key, id);
    }
    free (id);
}

static void
add_call (struct request *r, mur_node block)
{
    size_t len;
    const char *input = mur_json_raw (r->json, member (r, block, "input"), &len);
    mur_text_comma (&r->text);
    mur_text_puts (&r->text, "{");
    add_id (r, "id", member (r, block, "id"));
    mur_text_puts (&r->text, ",\"type\":\"function\",\"function\":{");
    mur_text_tool_name (&r->text, r->json, member (r, block, "name"));
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
    for (mur_node b = mur_json_first (r->json, content); b >= 0; b = mur_json_next (r->json, b)) {
        mur_node field = member (r, b, "field");
        if (! mur_block_is (r->json, b, "thinking"))
            continue;
        if (mur_json_is (r->json, field, "reasoning_details")) {
            mur_text_node (&r->text, "reasoning_details", r->json, member (r, b, "details"));
            return;
        }
        for (const char *const *name = reasoning_fields; *name != NULL; name++)
            if (mur_json_is (r->json, field, *name)) {
                char *text = joined (r, content, "thinking", "thinking");
                mur_text_string (&r->text, *name, text);
                free (text);
                return;
            }
    }
}

static void
add_words (struct request *r, const char *text)
{
    if (text != NULL)
        mur_text_string (&r->text, "content", text);
    else if (r->dialect == DIALECT_OPENAI)
        mur_text_puts (&r->text, ",\"content\":null");
    else if (r->dialect != DIALECT_GEMINI)
        mur_text_puts (&r->text, ",\"content\":\"\"");
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
    add_words (r, text);
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
add_system (struct request *r)
{
    char *system = mur_json_text (r->json, member (r, 0, "system"));
    if (system != NULL && *system != '\0') {
        open_message (r, "system");
        if (r->marker != NULL)
            add_marked (r, system);
        else
            mur_text_string (&r->text, "content", system);
        mur_text_puts (&r->text, "}");
    }
    free (system);
}

static void
add_other_message (struct request *r, mur_node message)
{
    bool is_result = mur_json_is (r->json, member (r, message, "role"), "tool");
    bool is_marked = r->marker != NULL && (message == r->marked[0] || message == r->marked[1]);
    open_message (r, is_result ? "tool" : "user");
    if (is_result)
        add_id (r, "tool_call_id", member (r, message, "tool_call_id"));
    add_content (r, member (r, message, "content"), is_marked);
    mur_text_puts (&r->text, "}");
}

static void
add_messages (struct request *r)
{
    mur_node messages = member (r, 0, "messages");
    mur_node last_user = -1;
    r->marked[0] = r->marked[1] = -1;
    mur_text_key (&r->text, "messages");
    mur_text_puts (&r->text, "[");
    add_system (r);
    for (mur_node m = mur_json_first (r->json, messages); m >= 0; m = mur_json_next (r->json, m)) {
        if (mur_json_is (r->json, member (r, m, "role"), "assistant"))
            continue;
        if (mur_json_is (r->json, member (r, m, "role"), "user"))
            last_user = m;
        r->marked[0] = r->marked[1];
        r->marked[1] = m;
    }
    for (mur_node m = mur_json_first (r->json, messages); m >= 0; m = mur_json_next (r->json, m))
        if (mur_json_is (r->json, member (r, m, "role"), "assistant"))
            add_model_message (r, member (r, m, "content"), m > last_user);
        else
            add_other_message (r, m);
    mur_text_puts (&r->text, "]");
}

static const char *const own_members[] = { "model",    "max_tokens", "max_completion_tokens",
                                           "messages", "tools",      "stream",
                                           "n",        NULL };

static void
add_request (struct request *r, const struct mur_json *config, const char *model)
{
    bool is_openai = r->dialect == DIALECT_OPENAI;
    mur_text_string (&r->text, "model", model);
    mur_text_node (&r->text, is_openai ? "max_completion_tokens" : "max_tokens", r->json,
                   member (r, 0, "max_tokens"));
    if (is_openai)
        mur_text_node (&r->text, "prompt_cache_key", r->json, member (r, 0, "prompt_cache_key"));
    mur_driver_tools (r->json, &r->text, "{\"type\":\"function\",\"function\":{", "parameters",
                      r->dialect == DIALECT_GEMINI ? MUR_SCHEMA_SMALL : MUR_SCHEMA_COMMON, "}}");
    add_messages (r);
    if (mur_driver_streams (config)) {
        mur_text_puts (&r->text, ",\"stream\":true");
        if (mur_json_get (config, mur_json_get (config, 0, "request"), "stream_options") < 0)
            mur_text_puts (&r->text, ",\"stream_options\":{\"include_usage\":true}");
    }
}

/* --- A call --- */

static const struct mur_provider provider = {
    .take_event = answer_take_event,
    .take_whole = answer_take_whole,
    .path = "/chat/completions",
    .version = "/v1",
    .is_versioned = true,
    .own_members = own_members,
};

void
mur_tool (const struct mur_input *in, struct mur_result *out)
{
    struct mur_json *config = mur_driver_config ();
    char *model = mur_json_text (in->json, mur_json_get (in->json, 0, "model"));
    struct request r = {
        .json = in->json,
        .dialect = dialect_of (config, model),
        .returns_reasoning =
            mur_json_bool (config, mur_json_get (config, 0, "return_reasoning"), true),
        .marker =
            mur_driver_cache_marker (config, model != NULL && strstr (model, "claude") != NULL),
    };
    answer_begin ();
    if (! mur_driver_takes_content (in->json, out))
        return;
    mur_text_puts (&r.text, "{");
    add_request (&r, config, model);
    if (! mur_driver_request_members (&provider, config, &r.text, out))
        return;
    mur_text_puts (&r.text, "}");
    mur_provider_call (&provider, in->json, config, &r.text, out);
}
