/* SPDX-License-Identifier: Apache-2.0
 *
 * What a server of Chat Completions answers (answer.h).
 *
 * Servers differ in what they leave out, so every member is optional here until the answer is
 * handed over. What comes in place of a delta, of `tool_calls` or of a text is read too.
 */
#include "answer.h"

#include <stdlib.h>
#include <string.h>

const char *const reasoning_fields[] = { "reasoning_content", "reasoning", "reasoning_text", NULL };

/* --- Usage --- */

/* Prompt tokens count those read from a cache or written to it, too; the runtime wants them
 * apart. */
static void
take_usage (struct mur_answer *answer, const struct mur_json *json)
{
    static const struct {
        const char *parent; /* NULL: usage itself */
        const char *key;
        enum mur_usage which;
    } members[] = {
        { NULL, "prompt_tokens", MUR_USAGE_INPUT },
        { NULL, "input_tokens", MUR_USAGE_INPUT },
        { NULL, "completion_tokens", MUR_USAGE_OUTPUT },
        { NULL, "output_tokens", MUR_USAGE_OUTPUT },
        { NULL, "prompt_cache_hit_tokens", MUR_USAGE_CACHED },
        { NULL, "cached_tokens", MUR_USAGE_CACHED },
        { NULL, "cache_read_input_tokens", MUR_USAGE_CACHED },
        { "prompt_tokens_details", "cached_tokens", MUR_USAGE_CACHED },
        { NULL, "cache_creation_input_tokens", MUR_USAGE_CACHE_WRITE },
        { "prompt_tokens_details", "cache_write_tokens", MUR_USAGE_CACHE_WRITE },
        { "completion_tokens_details", "reasoning_tokens", MUR_USAGE_THINKING },
    };
    mur_node usage = mur_json_get (json, 0, "usage");
    if (mur_json_kind (json, usage) != MUR_JSON_OBJECT)
        usage = mur_json_get (json, mur_json_get (json, 0, "x_groq"), "usage");
    if (mur_json_kind (json, usage) != MUR_JSON_OBJECT)
        return;
    bool has_input = false;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        mur_node from =
            members[i].parent != NULL ? mur_json_get (json, usage, members[i].parent) : usage;
        mur_node number = mur_json_get (json, from, members[i].key);
        mur_answer_usage (answer, members[i].which, json, number);
        has_input = has_input ||
                    (members[i].which == MUR_USAGE_INPUT && mur_json_int (json, number, -1) >= 0);
    }
    static const enum mur_usage inside[] = { MUR_USAGE_CACHED, MUR_USAGE_CACHE_WRITE };
    for (size_t i = 0; i < 2 && has_input; i++) {
        int64_t part = answer->usage[inside[i]];
        if (part > 0 && part <= answer->usage[MUR_USAGE_INPUT])
            answer->usage[MUR_USAGE_INPUT] -= part;
    }
}

/* --- Words --- */

static void
think (struct mur_answer *answer, const struct mur_json *json, mur_node piece, const char *field)
{
    if (mur_json_kind (json, piece) != MUR_JSON_STRING || mur_json_is (json, piece, ""))
        return;
    struct mur_block *block = mur_answer_block (answer, MUR_BLOCK_THINKING, MUR_THINKING_NUMBER);
    if (field != NULL && block->more.len == 0)
        mur_text_string (&block->more, "field", field);
    mur_block_grow (block, json, piece);
}

static void
refuse (struct mur_answer *answer, const struct mur_json *json, mur_node words)
{
    char *refusal = mur_json_text (json, words);
    if (refusal != NULL && *refusal != '\0')
        mur_answer_fail (answer, MUR_TRANSIENT_NO, "the model refused to answer: %.500s", refusal);
    free (refusal);
}

/* Content is a string, or parts: {"type": "text", "text"}, {"type": "thinking", "thinking": a
 * string or parts}. */
static void
take_content (struct mur_answer *answer, const struct mur_json *json, mur_node content,
              bool is_thinking)
{
    if (mur_json_kind (json, content) == MUR_JSON_STRING && is_thinking)
        think (answer, json, content, NULL);
    else if (mur_json_kind (json, content) == MUR_JSON_STRING)
        mur_answer_words (answer, json, content);
    if (mur_json_kind (json, content) != MUR_JSON_ARRAY)
        return;
    for (mur_node p = mur_json_first (json, content); p >= 0; p = mur_json_next (json, p)) {
        char *type = mur_json_text (json, mur_json_get (json, p, "type"));
        if (mur_is_media (type))
            mur_answer_no_media (answer, type);
        free (type);
        refuse (answer, json, mur_json_get (json, p, "refusal"));
        mur_node text = mur_json_get (json, p, "text");
        take_content (answer, json, mur_json_kind (json, p) == MUR_JSON_STRING ? p : text,
                      is_thinking);
        take_content (answer, json, mur_json_get (json, p, "thinking"), true);
    }
}

/* --- Reasoning that goes back as it came --- */

/* One entry of `reasoning_details`: its texts grow over the events, the rest stays. */
static struct detail {
    char *type;
    int64_t index;
    struct mur_text words[3];
    struct mur_text rest;
} * details;

static size_t detail_count;

void
answer_begin (void)
{
    details = NULL;
    detail_count = 0;
}

static const char *const detail_words[] = { "text", "summary", "data" };

static struct detail *
detail_of (const struct mur_json *json, mur_node entry)
{
    char *type = mur_json_text (json, mur_json_get (json, entry, "type"));
    int64_t index = mur_json_int (json, mur_json_get (json, entry, "index"), -1);
    struct detail *last = detail_count > 0 ? &details[detail_count - 1] : NULL;
    if (last != NULL && last->index == index && index >= 0 && type != NULL &&
        strcmp (last->type, type) == 0) {
        free (type);
        return last;
    }
    struct detail *grown = realloc (details, (detail_count + 1) * sizeof *details);
    if (grown == NULL)
        abort ();
    details = grown;
    details[detail_count] =
        (struct detail){ .type = type != NULL ? type : mur_format ("%s", ""), .index = index };
    return &details[detail_count++];
}

static void
take_detail (const struct mur_json *json, mur_node entry)
{
    struct detail *detail = detail_of (json, entry);
    for (mur_node n = mur_json_first (json, entry); n >= 0; n = mur_json_next (json, n)) {
        char *key = mur_json_key (json, n), *text = mur_json_text (json, n);
        bool is_words = false;
        for (size_t i = 0; i < 3 && key != NULL; i++)
            if (text != NULL && strcmp (key, detail_words[i]) == 0) {
                mur_text_puts (&detail->words[i], text);
                is_words = true;
            }
        char *mark = mur_format ("\"%s\":", key != NULL ? key : "");
        bool is_there = detail->rest.len > 0 && strstr (detail->rest.data, mark) != NULL;
        if (! is_words && ! is_there && mur_json_kind (json, n) != MUR_JSON_NULL)
            mur_answer_keep (&detail->rest, key, json, n);
        free (mark);
        free (text);
        free (key);
    }
}

static void
write_details (struct mur_text *to)
{
    mur_text_puts (to, "[");
    for (size_t i = 0; i < detail_count; i++) {
        mur_text_comma (to);
        mur_text_puts (to, "{");
        mur_text_add (to, details[i].rest.data, details[i].rest.len);
        for (size_t w = 0; w < 3; w++)
            if (details[i].words[w].len > 0)
                mur_text_string (to, detail_words[w], details[i].words[w].data);
        mur_text_puts (to, "}");
    }
    mur_text_puts (to, "]");
}

static void
take_details (struct mur_answer *answer, const struct mur_json *json, mur_node list, bool has_text)
{
    if (mur_json_count (json, list) == 0)
        return;
    for (mur_node n = mur_json_first (json, list); n >= 0; n = mur_json_next (json, n)) {
        take_detail (json, n);
        if (! has_text)
            think (answer, json, mur_json_get (json, n, "text"), "reasoning_details");
    }
    struct mur_block *block = mur_answer_block (answer, MUR_BLOCK_THINKING, MUR_THINKING_NUMBER);
    block->more.len = 0;
    mur_text_string (&block->more, "field", "reasoning_details");
    mur_text_key (&block->more, "details");
    write_details (&block->more);
}

static void
take_reasoning (struct mur_answer *answer, const struct mur_json *json, mur_node message)
{
    bool has_text = false;
    for (const char *const *field = reasoning_fields; *field != NULL && ! has_text; field++) {
        mur_node piece = mur_json_get (json, message, *field);
        has_text =
            mur_json_kind (json, piece) == MUR_JSON_STRING && ! mur_json_is (json, piece, "");
        think (answer, json, piece, *field);
    }
    take_details (answer, json, mur_json_get (json, message, "reasoning_details"), has_text);
}

/* --- Calls --- */

/* What a piece of a call says of itself. */
struct piece {
    int64_t number; /* -1: none */
    char *id;       /* NULL: none, or empty */
    char *name;     /* the same */
    mur_node arguments;
    bool has_input; /* arguments that are not empty */
};

static struct mur_block *
last_call (struct mur_answer *answer, int64_t number, const char *key)
{
    for (size_t i = answer->count; i > 0; i--) {
        struct mur_block *block = &answer->blocks[i - 1];
        if (block->kind == MUR_BLOCK_CALL && (number < 0 || block->number == number) &&
            (key == NULL || (block->key != NULL && strcmp (block->key, key) == 0)))
            return block;
    }
    return NULL;
}

/* A name again, behind an input that is whole: another call. */
static bool
begins_anew (const struct mur_block *block, const struct piece *piece)
{
    bool has_both = piece->name != NULL && block->name != NULL;
    bool is_repeated = has_both && strcmp (block->name, piece->name) == 0 && ! piece->has_input;
    return has_both && mur_block_is_whole (block) && ! (is_repeated && piece->number >= 0);
}

static struct mur_block *
known_by_id (struct mur_answer *answer, const struct piece *piece)
{
    struct mur_block *block = last_call (answer, -1, piece->id);
    if (block != NULL) {
        bool is_same = piece->number < 0 || block->number < 0 || block->number == piece->number;
        return is_same && ! begins_anew (block, piece) ? block : NULL;
    }
    block = piece->number >= 0 ? last_call (answer, piece->number, NULL) : NULL;
    if (block == NULL || (block->key != NULL && piece->name != NULL))
        return NULL;
    return begins_anew (block, piece) ? NULL : block;
}

/* A piece of a name: the call has one already, no input yet, and this brings none. */
static bool
continues_name (const struct mur_block *block, const struct piece *piece)
{
    return piece->number >= 0 && piece->arguments < 0 && block->text.len == 0;
}

static struct mur_block *
known_by_place (struct mur_answer *answer, const struct piece *piece)
{
    struct mur_block *block = last_call (answer, piece->number, NULL);
    if (block == NULL || piece->name == NULL || block->name == NULL)
        return block;
    if (block->text.len == 0)
        return strcmp (block->name, piece->name) == 0 || continues_name (block, piece) ? block
                                                                                       : NULL;
    return begins_anew (block, piece) ? NULL : block;
}

static void
name_call (struct mur_answer *answer, struct mur_block *block, const struct piece *piece)
{
    if (block->name != NULL && piece->name != NULL && strcmp (block->name, piece->name) != 0 &&
        continues_name (block, piece)) {
        char *whole = mur_format ("%s%s", block->name, piece->name);
        free (block->name);
        block->name = whole;
    }
    mur_answer_call (answer, block, piece->id, piece->name);
}

static char *
word (const struct mur_json *json, mur_node node)
{
    char *text = mur_json_text (json, node);
    if (text != NULL && *text == '\0') {
        free (text);
        text = NULL;
    }
    return text;
}

/* `is_whole`: an entry of a whole answer; `is_another`: behind one of the same event, without a
 * place of its own. */
static void
take_call (struct mur_answer *answer, const struct mur_json *json, mur_node call, bool is_whole,
           bool is_another)
{
    mur_node function = mur_json_get (json, call, "function");
    if (function < 0)
        function = call;
    mur_node arguments = mur_json_get (json, function, "arguments");
    struct piece piece = {
        .number = mur_json_int (json, mur_json_get (json, call, "index"), -1),
        .id = word (json, mur_json_get (json, call, "id")),
        .name = word (json, mur_json_get (json, function, "name")),
        .arguments = arguments,
        .has_input = mur_json_count (json, arguments) > 0 ||
                     (mur_json_kind (json, arguments) == MUR_JSON_STRING &&
                      ! mur_json_is (json, arguments, "")),
    };
    struct mur_block *block = NULL;
    bool is_new = piece.name != NULL ? is_whole || is_another : is_whole && piece.id != NULL;
    if (! is_new)
        block = piece.id != NULL ? known_by_id (answer, &piece) : known_by_place (answer, &piece);
    if (block == NULL)
        block = mur_answer_add (answer, MUR_BLOCK_CALL, piece.number);
    name_call (answer, block, &piece);
    mur_block_input (block, json, arguments);
    mur_block_grow (block, json, arguments);
    if (block->more.len == 0)
        mur_answer_keep (&block->more, "extra_content", json,
                         mur_json_get (json, call, "extra_content"));
    free (piece.id);
    free (piece.name);
}

static void
take_calls (struct mur_answer *answer, const struct mur_json *json, mur_node message, bool is_whole)
{
    mur_node calls = mur_json_get (json, message, "tool_calls");
    bool is_first = true;
    if (mur_json_kind (json, calls) == MUR_JSON_OBJECT)
        take_call (answer, json, calls, is_whole, false);
    for (mur_node c = mur_json_kind (json, calls) == MUR_JSON_ARRAY ? mur_json_first (json, calls)
                                                                    : -1;
         c >= 0; c = mur_json_next (json, c)) {
        bool has_place = mur_json_get (json, c, "index") >= 0;
        take_call (answer, json, c, is_whole, ! is_first && ! has_place);
        is_first = false;
    }
    mur_node legacy = mur_json_get (json, message, "function_call");
    if (mur_json_kind (json, legacy) == MUR_JSON_OBJECT)
        take_call (answer, json, legacy, is_whole, false);
}

/* --- The whole --- */

static void
take_media (struct mur_answer *answer, const struct mur_json *json, mur_node message)
{
    static const char *const members[] = { "images", "audio", "video" };
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        mur_node media = mur_json_get (json, message, members[i]);
        if (mur_json_count (json, media) > 0)
            mur_answer_no_media (answer, i == 0 ? "image" : members[i]);
    }
}

static void
take_message (struct mur_answer *answer, const struct mur_json *json, mur_node message,
              bool is_whole)
{
    take_media (answer, json, message);
    take_reasoning (answer, json, message);
    take_content (answer, json, mur_json_get (json, message, "content"), false);
    take_calls (answer, json, message, is_whole);
    refuse (answer, json, mur_json_get (json, message, "refusal"));
}

/* The one choice that was asked for. */
static mur_node
choice_of (struct mur_answer *answer, const struct mur_json *json)
{
    mur_node choices = mur_json_get (json, 0, "choices");
    answer->is_known = answer->is_known || choices >= 0;
    for (mur_node c = mur_json_first (json, choices); c >= 0; c = mur_json_next (json, c))
        if (mur_json_int (json, mur_json_get (json, c, "index"), 0) <= 0)
            return c;
    return -1;
}

void
answer_take_event (struct mur_answer *answer, const struct mur_json *json)
{
    mur_node choice = choice_of (answer, json);
    mur_node delta = mur_json_get (json, choice, "delta");
    mur_node message = mur_json_get (json, choice, "message");
    if (mur_json_kind (json, delta) == MUR_JSON_OBJECT)
        take_message (answer, json, delta, false);
    else if (answer->count == 0)
        take_message (answer, json, message, true);
    take_usage (answer, json);
    mur_answer_stop (answer, json, mur_json_get (json, choice, "finish_reason"));
}

void
answer_take_whole (struct mur_answer *answer, const struct mur_json *json)
{
    mur_node choice = choice_of (answer, json);
    mur_node message = mur_json_get (json, choice, "message");
    if (mur_json_kind (json, message) != MUR_JSON_OBJECT)
        message = mur_json_get (json, choice, "delta");
    take_message (answer, json, message, true);
    take_usage (answer, json);
    mur_answer_stop (answer, json, mur_json_get (json, choice, "finish_reason"));
}
