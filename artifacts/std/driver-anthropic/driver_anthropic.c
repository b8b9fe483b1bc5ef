/* SPDX-License-Identifier: Apache-2.0
 *
 * std/driver-anthropic: asks a provider that speaks the Messages API (README.md says its config).
 *
 * It turns the runtime's request into the provider's and the answer back; sending, failing and
 * streaming are murmur_model.h's. Always true: the same request of the runtime is sent as the same
 * bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "murmur_model.h"
#include "murmur_names.h"

/* --- The request --- */

/* Where the provider is to remember what it has read: the text of a marker, and where in the
 * request it goes (before the closing brace of a block). */
struct request {
    const struct mur_json *json;
    struct mur_text text;
    char *marker; /* NULL: no caching */
    size_t last_block;
    size_t marks[2]; /* the latest two turns of the user, the later one last; 0: none */
};

static mur_node
member (const struct request *r, mur_node object, const char *key)
{
    return mur_json_get (r->json, object, key);
}

static void
end_block (struct request *r)
{
    r->last_block = r->text.len;
    mur_text_puts (&r->text, "}");
}

/* Ids as the provider takes them, whoever made them. */
static void
add_id (struct request *r, const char *key, mur_node node)
{
    char *id = mur_json_text (r->json, node);
    for (char *c = id; c != NULL && *c != '\0'; c++)
        if (strchr ("-_", *c) == NULL && ! (*c >= '0' && *c <= '9') && ! (*c >= 'A' && *c <= 'Z') &&
            ! (*c >= 'a' && *c <= 'z'))
            *c = '_';
    mur_text_string (&r->text, key, id);
    free (id);
}

static bool
is_empty_text (const struct request *r, mur_node block)
{
    char *text = mur_json_text (r->json, member (r, block, "text"));
    bool is_empty = text == NULL || text[strspn (text, " \t\r\n")] == '\0';
    free (text);
    return is_empty;
}

/* The provider takes no empty text, and thinking only with the signature it gave. */
static bool
is_wanted (const struct request *r, mur_node block)
{
    if (mur_block_is (r->json, block, "text"))
        return ! is_empty_text (r, block);
    if (mur_block_is (r->json, block, "thinking"))
        return mur_json_kind (r->json, member (r, block, "signature")) == MUR_JSON_STRING;
    return mur_json_kind (r->json, block) == MUR_JSON_OBJECT;
}

static void
add_input (struct request *r, mur_node input)
{
    if (mur_json_kind (r->json, input) != MUR_JSON_OBJECT) {
        mur_text_node (&r->text, "input", r->json, input);
        return;
    }
    mur_text_key (&r->text, "input");
    mur_narrow_input (r->json, input, &r->text);
}

static void
add_block (struct request *r, mur_node block)
{
    mur_text_comma (&r->text);
    if (mur_block_is (r->json, block, "tool_call")) {
        mur_text_puts (&r->text, "{\"type\":\"tool_use\"");
        add_id (r, "id", member (r, block, "id"));
        mur_text_tool_name (&r->text, r->json, member (r, block, "name"));
        add_input (r, member (r, block, "input"));
        end_block (r);
        return;
    }
    mur_text_node (&r->text, NULL, r->json, block);
    r->last_block = r->text.len - 1;
}

static void
add_blocks (struct request *r, mur_node content)
{
    for (mur_node b = mur_json_first (r->json, content); b >= 0; b = mur_json_next (r->json, b))
        if (is_wanted (r, b))
            add_block (r, b);
}

static void
add_tool_result (struct request *r, mur_node message)
{
    mur_text_comma (&r->text);
    mur_text_puts (&r->text, "{\"type\":\"tool_result\"");
    add_id (r, "tool_use_id", member (r, message, "tool_call_id"));
    mur_text_key (&r->text, "content");
    mur_text_puts (&r->text, "[");
    add_blocks (r, member (r, message, "content"));
    mur_text_puts (&r->text, "]");
    if (mur_json_bool (r->json, member (r, message, "is_error"), false))
        mur_text_puts (&r->text, ",\"is_error\":true");
    end_block (r);
}

static const char model_role[] = "assistant", user_role[] = "user";

/* Messages in a row of one side form one message: the results of a turn's calls are the user's. */
static void
open_turn (struct request *r, const char *role)
{
    mur_text_comma (&r->text);
    mur_text_puts (&r->text, "{");
    mur_text_string (&r->text, "role", role);
    mur_text_key (&r->text, "content");
    mur_text_puts (&r->text, "[");
}

static void
close_turn (struct request *r, const char *role)
{
    if (role == NULL)
        return;
    mur_text_puts (&r->text, "]}");
    if (role != user_role)
        return;
    r->marks[0] = r->marks[1];
    r->marks[1] = r->last_block;
}

static bool
has_wanted (const struct request *r, mur_node content)
{
    for (mur_node b = mur_json_first (r->json, content); b >= 0; b = mur_json_next (r->json, b))
        if (is_wanted (r, b))
            return true;
    return false;
}

static void
add_messages (struct request *r)
{
    mur_node messages = member (r, 0, "messages");
    const char *open = NULL;
    mur_text_key (&r->text, "messages");
    mur_text_puts (&r->text, "[");
    for (mur_node m = mur_json_first (r->json, messages); m >= 0; m = mur_json_next (r->json, m)) {
        bool is_result = mur_json_is (r->json, member (r, m, "role"), "tool");
        bool is_model = mur_json_is (r->json, member (r, m, "role"), "assistant");
        const char *role = is_model ? model_role : user_role;
        mur_node content = member (r, m, "content");
        if (! is_result && ! has_wanted (r, content))
            continue;
        if (open != role) {
            close_turn (r, open);
            open_turn (r, role);
            open = role;
        }
        if (is_result)
            add_tool_result (r, m);
        else
            add_blocks (r, content);
    }
    close_turn (r, open);
    mur_text_puts (&r->text, "]");
}

static void
add_tools (struct request *r)
{
    size_t before = r->text.len;
    mur_driver_tools (r->json, &r->text, "{", "input_schema", MUR_SCHEMA_NARROW, "}");
    r->last_block = r->text.len > before ? r->text.len - strlen ("}]") : 0;
}

static void
insert_marker (struct request *r, size_t at)
{
    if (r->marker == NULL || at == 0)
        return;
    size_t tail_len = r->text.len - at;
    char *tail = mur_format ("%s", r->text.data + at);
    r->text.len = at;
    mur_text_puts (&r->text, r->marker);
    mur_text_add (&r->text, tail, tail_len);
    free (tail);
}

/* The system prompt, remembered with the tools that stand before it. */
static void
add_system (struct request *r)
{
    char *system = mur_json_text (r->json, member (r, 0, "system"));
    if (system == NULL || *system == '\0') {
        insert_marker (r, r->last_block);
    } else {
        mur_text_key (&r->text, "system");
        mur_text_puts (&r->text, "[{\"type\":\"text\"");
        mur_text_string (&r->text, "text", system);
        mur_text_printf (&r->text, "%s}]", r->marker != NULL ? r->marker : "");
    }
    r->last_block = 0;
    free (system);
}

static const char *const own_members[] = { "model",    "max_tokens", "system", "tools",
                                           "messages", "stream",     NULL };

/* --- The answer --- */

static void
take_usage (struct mur_answer *answer, const struct mur_json *json, mur_node usage)
{
    static const struct {
        const char *key;
        enum mur_usage which;
    } members[] = {
        { "input_tokens", MUR_USAGE_INPUT },
        { "output_tokens", MUR_USAGE_OUTPUT },
        { "cache_read_input_tokens", MUR_USAGE_CACHED },
        { "cache_creation_input_tokens", MUR_USAGE_CACHE_WRITE },
    };
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        mur_answer_usage (answer, members[i].which, json,
                          mur_json_get (json, usage, members[i].key));
    mur_node details = mur_json_get (json, usage, "output_tokens_details");
    mur_answer_usage (answer, MUR_USAGE_THINKING, json,
                      mur_json_get (json, details, "thinking_tokens"));
}

/* A refusal ends the call: what was written so far is not an answer. */
static void
take_stop (struct mur_answer *answer, const struct mur_json *json, mur_node from)
{
    mur_node reason = mur_json_get (json, from, "stop_reason");
    if (mur_json_is (json, reason, "pause_turn"))
        mur_answer_fail (
            answer, MUR_TRANSIENT_NO,
            "the provider paused the turn for a tool of its own; this driver offers none");
    if (mur_json_is (json, reason, "refusal")) {
        char *why = mur_json_text (
            json, mur_json_get (json, mur_json_get (json, from, "stop_details"), "explanation"));
        mur_answer_fail (answer, MUR_TRANSIENT_NO, "the model refused to answer%s%.500s",
                         why != NULL ? ": " : "", why != NULL ? why : "");
        free (why);
    }
    mur_answer_stop (answer, json, reason);
}

static void
start_call (struct mur_answer *answer, int64_t number, const struct mur_json *json, mur_node from)
{
    struct mur_block *block = mur_answer_add (answer, MUR_BLOCK_CALL, number);
    char *id = mur_json_text (json, mur_json_get (json, from, "id"));
    char *name = mur_json_text (json, mur_json_get (json, from, "name"));
    mur_node input = mur_json_get (json, from, "input");
    mur_answer_call (answer, block, id, name);
    if (mur_json_count (json, input) > 0) /* empty where pieces follow */
        mur_block_input (block, json, input);
    mur_block_grow (block, json, input);
    free (name);
    free (id);
}

static void
start_block (struct mur_answer *answer, int64_t number, const struct mur_json *json, mur_node from)
{
    char *type = mur_json_text (json, mur_json_get (json, from, "type"));
    bool is_thinking = type != NULL && strcmp (type, "thinking") == 0;
    if (mur_is_media (type)) {
        mur_answer_no_media (answer, type);
    } else if (type != NULL && strcmp (type, "tool_use") == 0) {
        start_call (answer, number, json, from);
    } else if (is_thinking || (type != NULL && strcmp (type, "text") == 0)) {
        struct mur_block *block =
            mur_answer_add (answer, is_thinking ? MUR_BLOCK_THINKING : MUR_BLOCK_TEXT, number);
        mur_block_grow (block, json, mur_json_get (json, from, type));
        mur_node signature = mur_json_get (json, from, "signature");
        if (is_thinking && ! mur_json_is (json, signature, ""))
            mur_answer_keep (&block->more, "signature", json, signature);
    } else if (type != NULL && *type != '\0') {
        mur_answer_keep (&mur_answer_add (answer, MUR_BLOCK_OTHER, number)->text, NULL, json, from);
    }
    free (type);
}

/* The kind of block that a piece belongs to. Pieces may come without their block's start, or
 * without its number. */
static struct mur_block *
block_of (struct mur_answer *answer, int64_t number, enum mur_block_kind kind)
{
    struct mur_block *block = mur_answer_find (answer, number);
    if (block == NULL && number < 0 && answer->count > 0)
        block = &answer->blocks[answer->count - 1];
    if (block != NULL && block->kind == kind)
        return block;
    return kind == MUR_BLOCK_CALL ? NULL : mur_answer_add (answer, kind, number);
}

static void
take_delta (struct mur_answer *answer, int64_t number, const struct mur_json *json, mur_node delta)
{
    static const struct {
        const char *key;
        enum mur_block_kind kind;
    } pieces[] = { { "text", MUR_BLOCK_TEXT },
                   { "thinking", MUR_BLOCK_THINKING },
                   { "partial_json", MUR_BLOCK_CALL } };
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        mur_node piece = mur_json_get (json, delta, pieces[i].key);
        if (mur_json_kind (json, piece) != MUR_JSON_STRING || mur_json_is (json, piece, ""))
            continue;
        struct mur_block *block = block_of (answer, number, pieces[i].kind);
        if (block != NULL)
            mur_block_grow (block, json, piece);
    }
    mur_node signature = mur_json_get (json, delta, "signature");
    struct mur_block *block = mur_answer_find (answer, number);
    if (mur_json_kind (json, signature) == MUR_JSON_STRING && block != NULL &&
        block->kind == MUR_BLOCK_THINKING) {
        block->more.len = 0;
        mur_answer_keep (&block->more, "signature", json, signature);
    }
}

static void
take_whole (struct mur_answer *answer, const struct mur_json *json)
{
    mur_node content = mur_json_get (json, 0, "content");
    answer->is_known = answer->is_known || content >= 0;
    for (mur_node b = mur_json_first (json, content); b >= 0; b = mur_json_next (json, b))
        start_block (answer, -1, json, b);
    take_usage (answer, json, mur_json_get (json, 0, "usage"));
    take_stop (answer, json, 0);
}

/* Events of a type that is not known are passed over: the provider may add some. */
static void
take_event (struct mur_answer *answer, const struct mur_json *json)
{
    int64_t number = mur_json_int (json, mur_json_get (json, 0, "index"), -1);
    if (mur_answer_is_event (answer, json, "message_start")) {
        take_usage (answer, json, mur_json_get (json, mur_json_get (json, 0, "message"), "usage"));
    } else if (mur_answer_is_event (answer, json, "content_block_start")) {
        start_block (answer, number, json, mur_json_get (json, 0, "content_block"));
    } else if (mur_answer_is_event (answer, json, "content_block_delta")) {
        take_delta (answer, number, json, mur_json_get (json, 0, "delta"));
    } else if (mur_answer_is_event (answer, json, "message_delta")) {
        take_usage (answer, json, mur_json_get (json, 0, "usage"));
        take_stop (answer, json, mur_json_get (json, 0, "delta"));
    } else if (mur_answer_is_event (answer, json, "message_stop")) {
        answer->is_ended = true;
    } else if (mur_answer_is_event (answer, json, "message") && answer->count == 0) {
        take_whole (answer, json);
    }
}

/* --- A call --- */

static const struct mur_provider provider = {
    .take_event = take_event,
    .take_whole = take_whole,
    .path = "/messages",
    .version = "/v1",
    .name_inputs = mur_widen_input,
    .header = { "anthropic-version", "2023-06-01" },
    .own_members = own_members,
};

void
mur_tool (const struct mur_input *in, struct mur_result *out)
{
    struct mur_json *config = mur_driver_config ();
    struct request r = { .json = in->json, .marker = mur_driver_cache_marker (config, true) };
    if (! mur_driver_takes_content (in->json, out))
        return;
    mur_text_puts (&r.text, "{");
    mur_text_node (&r.text, "model", r.json, member (&r, 0, "model"));
    mur_text_node (&r.text, "max_tokens", r.json, member (&r, 0, "max_tokens"));
    if (! mur_driver_request_members (&provider, config, &r.text, out))
        return;
    add_tools (&r);
    add_system (&r);
    add_messages (&r);
    insert_marker (&r, r.marks[1]);
    insert_marker (&r, r.marks[0]);
    mur_text_puts (&r.text, mur_driver_streams (config) ? ",\"stream\":true}" : "}");
    mur_provider_call (&provider, in->json, config, &r.text, out);
}
