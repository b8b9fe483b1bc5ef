/* SPDX-License-Identifier: Apache-2.0
 *
 * The answer of one call (murmur_answer.h says what each function does).
 */
#include "murmur_answer.h"
#include "murmur_internal.h"
#include "murmur_mend.h"

#include <ctype.h>
#include <stdio.h>

#if defined(MUR_ROLE_TOOL)

#define UNNAMED "unnamed"

/* --- Blocks --- */

struct mur_block *
mur_answer_find (struct mur_answer *answer, int64_t number)
{
    for (size_t i = answer->count; i > 0; i--)
        if (answer->blocks[i - 1].number == number)
            return &answer->blocks[i - 1];
    return NULL;
}

struct mur_block *
mur_answer_add (struct mur_answer *answer, enum mur_block_kind kind, int64_t number)
{
    answer->blocks = must (realloc (answer->blocks, (answer->count + 1) * sizeof *answer->blocks));
    struct mur_block *block = &answer->blocks[answer->count++];
    *block = (struct mur_block){ .kind = kind, .number = number };
    return block;
}

struct mur_block *
mur_answer_block (struct mur_answer *answer, enum mur_block_kind kind, int64_t number)
{
    struct mur_block *block = mur_answer_find (answer, number);
    return block != NULL && block->kind == kind ? block : mur_answer_add (answer, kind, number);
}

static void
show (const struct mur_block *block, size_t from)
{
    size_t len = block->text.len - from;
    if (len == 0)
        return;
    if (block->kind == MUR_BLOCK_TEXT)
        mur_emit (block->text.data + from, len);
    else if (block->kind == MUR_BLOCK_THINKING)
        mur_emit_thinking (block->text.data + from, len);
    else if (block->kind == MUR_BLOCK_CALL && block->id != NULL)
        mur_call_bytes (block->id, block->text.len);
}

void
mur_block_grow (struct mur_block *block, const struct mur_json *json, mur_node piece)
{
    char *text = json_text_in_halves (json, piece);
    size_t before = block->text.len;
    if (text != NULL && *text != '\0')
        text_join (&block->pending, text, strlen (text), &block->text);
    show (block, before);
    free (text);
}

void
mur_block_grow_text (struct mur_block *block, const char *piece)
{
    size_t before = block->text.len;
    if (piece != NULL && *piece != '\0')
        text_join (&block->pending, piece, strlen (piece), &block->text);
    show (block, before);
}

void
mur_block_input (struct mur_block *block, const struct mur_json *json, mur_node input)
{
    if (mur_json_kind (json, input) != MUR_JSON_OBJECT &&
        mur_json_kind (json, input) != MUR_JSON_ARRAY)
        return;
    size_t before = block->text.len;
    mur_text_node (&block->text, NULL, json, input);
    show (block, before);
}

/* --- Words, and thinking in front of them --- */

static const char think_open[] = "<think>", think_close[] = "</think>";

/* How much of the end may be the beginning of `mark`. */
static size_t
tail_of (const struct mur_text *text, const char *mark)
{
    for (size_t len = strlen (mark) - 1; len > 0; len--)
        if (len <= text->len && memcmp (text->data + text->len - len, mark, len) == 0)
            return len;
    return 0;
}

static void
give (struct mur_answer *answer, enum mur_block_kind kind, const char *bytes, size_t len)
{
    if (len == 0)
        return;
    int64_t number = kind == MUR_BLOCK_TEXT ? MUR_TEXT_NUMBER : MUR_THINKING_NUMBER;
    struct mur_block *block = mur_answer_block (answer, kind, number);
    size_t before = block->text.len;
    mur_text_add (&block->text, bytes, len);
    show (block, before);
}

/* Hands on what is certain of the words held back; at the end everything is. */
static void
sort_words (struct mur_answer *answer, bool is_end)
{
    struct mur_words *words = &answer->words;
    struct mur_text *held = &words->held;
    const char *data = held->data != NULL ? held->data : "";
    size_t blank = strspn (data, " \t\r\n"), open_len = sizeof think_open - 1;
    if (words->place == MUR_WORDS_BEGIN) {
        bool may_open = strncmp (data + blank, think_open, held->len - blank) == 0;
        if (held->len - blank < open_len && may_open && ! is_end)
            return;
        bool opens = strncmp (data + blank, think_open, open_len) == 0;
        words->place = opens ? MUR_WORDS_THINKING : MUR_WORDS_ANSWER;
        data += opens ? blank + open_len : 0;
    }
    const char *end = held->data != NULL ? held->data + held->len : data;
    if (words->place == MUR_WORDS_THINKING) {
        const char *close = strstr (data, think_close);
        size_t tail = is_end ? 0 : tail_of (held, think_close);
        const char *until = close != NULL ? close : end - tail;
        give (answer, MUR_BLOCK_THINKING, data, (size_t)(until - data));
        data = until;
        if (close != NULL) {
            words->place = MUR_WORDS_BEHIND;
            data = close + sizeof think_close - 1;
        }
    }
    if (words->place == MUR_WORDS_BEHIND) {
        data += strspn (data, "\r\n");
        words->place = data < end ? MUR_WORDS_ANSWER : MUR_WORDS_BEHIND;
    }
    if (words->place == MUR_WORDS_ANSWER) {
        give (answer, MUR_BLOCK_TEXT, data, (size_t)(end - data));
        data = end;
    }
    struct mur_text rest = { 0 };
    mur_text_add (&rest, data, (size_t)(end - data));
    mur_text_free (held);
    *held = rest;
}

void
mur_answer_words (struct mur_answer *answer, const struct mur_json *json, mur_node piece)
{
    char *text = json_text_in_halves (json, piece);
    if (text != NULL && *text != '\0') {
        text_join (&answer->words.pending, text, strlen (text), &answer->words.held);
        sort_words (answer, false);
    }
    free (text);
}

/* --- Calls --- */

static bool
is_asked (const struct mur_json *request, const char *id)
{
    mur_node messages = mur_json_get (request, 0, "messages");
    for (mur_node m = mur_json_first (request, messages); m >= 0; m = mur_json_next (request, m)) {
        mur_node content = mur_json_get (request, m, "content");
        for (mur_node b = mur_json_first (request, content); b >= 0; b = mur_json_next (request, b))
            if (mur_json_is (request, mur_json_get (request, b, "type"), "tool_call") &&
                mur_json_is (request, mur_json_get (request, b, "id"), id))
                return true;
    }
    return false;
}

static bool
is_taken (const struct mur_answer *answer, const char *id)
{
    for (size_t i = 0; i < answer->count; i++)
        if (answer->blocks[i].id != NULL && strcmp (answer->blocks[i].id, id) == 0)
            return true;
    return is_asked (answer->request, id);
}

/* No provider makes a longer one, and none takes one. */
#define ID_LIMIT_BYTES 64

static bool
is_id (const char *id)
{
    size_t len = id != NULL ? strlen (id) : 0;
    for (size_t i = 0; i < len; i++)
        if (id[i] <= ' ' || id[i] > '~')
            return false;
    return len > 0 && len <= ID_LIMIT_BYTES;
}

/* The provider's id where it is one, else one of our own, which differs from turn to turn. */
static char *
unique_id (const struct mur_answer *answer, const char *id)
{
    size_t turn = mur_json_count (answer->request, mur_json_get (answer->request, 0, "messages"));
    if (is_id (id) && ! is_taken (answer, id))
        return copy_bytes (id, strlen (id));
    char *own = NULL;
    for (size_t n = answer->count; own == NULL || is_taken (answer, own); n++) {
        free (own);
        own = mur_format ("call_%zu_%zu", turn, n);
    }
    return own;
}

void
mur_answer_call (struct mur_answer *answer, struct mur_block *block, const char *id,
                 const char *name)
{
    bool is_shown = block->id != NULL && block->name != NULL;
    if (block->id == NULL)
        block->id = unique_id (answer, id);
    if (block->key == NULL && id != NULL && *id != '\0')
        block->key = copy_bytes (id, strlen (id));
    if (block->name == NULL && name != NULL && *name != '\0')
        block->name = copy_bytes (name, strlen (name));
    if (! is_shown && block->name != NULL)
        mur_call_started (block->id, block->name);
}

bool
mur_answer_is_event (struct mur_answer *answer, const struct mur_json *json, const char *type)
{
    mur_node own = mur_json_get (json, 0, "type");
    bool is_it = mur_json_kind (json, own) == MUR_JSON_STRING
                     ? mur_json_is (json, own, type)
                     : answer->event != NULL && strcmp (answer->event, type) == 0;
    answer->is_known = answer->is_known || is_it;
    return is_it;
}

bool
mur_block_is_whole (const struct mur_block *block)
{
    return block->text.len > 0 && mur_json_check (block->text.data, block->text.len, NULL) &&
           block->text.data[strspn (block->text.data, " \t\r\n")] == '{';
}

void
mur_answer_keep (struct mur_text *to, const char *key, const struct mur_json *json, mur_node node)
{
    struct mur_text value = { 0 };
    size_t len;
    const char *raw = mur_json_raw (json, node, &len);
    if (len > 0 && mur_mend_value (raw, len, &value)) {
        if (key != NULL)
            mur_text_key (to, key);
        mur_text_add (to, value.data, value.len);
    }
    mur_text_free (&value);
}

/* --- Usage and the end --- */

void
mur_answer_usage (struct mur_answer *answer, enum mur_usage which, const struct mur_json *json,
                  mur_node number)
{
    int64_t value = mur_json_int (json, number, -1);
    if (value >= 0)
        answer->usage[which] = value;
}

static bool
has_ended (const struct mur_answer *answer)
{
    return answer->stop_reason != NULL || answer->stop_word != NULL;
}

static void
set_failure (struct mur_answer *answer, enum mur_transient transient, char *sentence)
{
    if (answer->error == NULL) {
        struct mur_text clean = { 0 };
        mur_text_utf8 (&clean, sentence, strlen (sentence));
        answer->error = clean.data;
        answer->transient = transient;
    }
    free (sentence);
}

void
mur_answer_fail (struct mur_answer *answer, enum mur_transient transient, const char *format, ...)
{
    struct mur_text sentence = { 0 };
    if (has_ended (answer))
        return;
    va_list arguments;
    va_start (arguments, format);
    mur_text_vprintf (&sentence, format, arguments);
    va_end (arguments);
    set_failure (answer, transient, sentence.data);
}

static const char end_turn[] = "end_turn", tool_call[] = "tool_call", max_tokens[] = "max_tokens";
/* Ends that are failures: for good, and for now. */
static const char filtered[] = "filtered", failed[] = "failed";

static const char *
known_stop (const char *word)
{
    static const char *const words[][2] = {
        { "stop", end_turn },
        { "end_turn", end_turn },
        { "end", end_turn },
        { "eos", end_turn },
        { "eos_token", end_turn },
        { "stop_sequence", end_turn },
        { "stop_token", end_turn },
        { "completed", end_turn },
        { "complete", end_turn },
        { "done", end_turn },
        { "finish", end_turn },
        { "finished", end_turn },
        { "tool_calls", tool_call },
        { "tool_call", tool_call },
        { "tool_use", tool_call },
        { "function_call", tool_call },
        { "function_calls", tool_call },
        { "length", max_tokens },
        { "max_tokens", max_tokens },
        { "max_output_tokens", max_tokens },
        { "max_completion_tokens", max_tokens },
        { "max_new_tokens", max_tokens },
        { "max_length", max_tokens },
        { "model_length", max_tokens },
        { "token_limit", max_tokens },
        { "model_context_window_exceeded", max_tokens },
        { "content_filter", filtered },
        { "content_filtered", filtered },
        { "safety", filtered },
        { "sensitive", filtered },
        { "guardrail_intervened", filtered },
        { "prohibited_content", filtered },
        { "blocklist", filtered },
        { "recitation", filtered },
        { "error", failed },
        { "failed", failed },
        { "network_error", failed },
        { "abort", failed },
        { "aborted", failed },
        { "cancelled", failed },
        { "malformed_function_call", failed },
        { "insufficient_system_resource", failed },
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp (word, words[i][0]) == 0)
            return words[i][1];
    return NULL;
}

/* "MaxTokens", "max-tokens" and "MAX_TOKENS" are one word. */
static char *
plain_word (const char *word)
{
    struct mur_text plain = { 0 };
    for (const char *c = word; *c != '\0'; c++) {
        bool begins = isupper ((unsigned char)*c) && c > word && islower ((unsigned char)c[-1]);
        if (begins)
            mur_text_add (&plain, "_", 1);
        char letter = *c == '-' || *c == ' ' ? '_' : (char)tolower ((unsigned char)*c);
        mur_text_add (&plain, &letter, 1);
    }
    return plain.data;
}

void
mur_answer_stop_word (struct mur_answer *answer, const char *word)
{
    if (*word == '\0' || strcmp (word, "null") == 0)
        return;
    char *plain = plain_word (word);
    const char *known = known_stop (plain);
    free (plain);
    if (known == filtered)
        set_failure (answer, MUR_TRANSIENT_NO,
                     mur_format ("the provider's content filter ended the answer (%.80s)", word));
    else if (known == failed)
        set_failure (answer, MUR_TRANSIENT_YES,
                     mur_format ("the provider broke off its answer (%.80s)", word));
    else if (known != NULL)
        answer->stop_reason = known;
    else if (answer->stop_reason == NULL && answer->stop_word == NULL)
        answer->stop_word = copy_bytes (word, strlen (word));
}

void
mur_answer_stop (struct mur_answer *answer, const struct mur_json *json, mur_node reason)
{
    char *word = mur_json_text (json, reason);
    if (word != NULL)
        mur_answer_stop_word (answer, word);
    free (word);
}

bool
mur_is_media (const char *type)
{
    static const char *const kinds[] = { "image", "audio", "video", "document", "file" };
    static const char *const ends[] = { "", "_url", "_file", "_generation_call" };
    bool is_input = type != NULL && strncmp (type, "input_", 6) == 0;
    const char *kind = is_input ? type + 6 : type;
    for (size_t i = 0; kind != NULL && i < sizeof kinds / sizeof *kinds; i++) {
        size_t len = strlen (kinds[i]);
        for (size_t e = 0; strncmp (kind, kinds[i], len) == 0 && e < sizeof ends / sizeof *ends;
             e++)
            if (strcmp (kind + len, ends[e]) == 0)
                return true;
    }
    return false;
}

void
mur_answer_no_media (struct mur_answer *answer, const char *type)
{
    set_failure (answer, MUR_TRANSIENT_NO,
                 mur_format ("the model answered with content of type \"%.40s\"; murmur takes text "
                             "and tool calls, no images or other media yet",
                             type));
}

/* --- Handing over --- */

static void
close_texts (struct mur_answer *answer)
{
    if (answer->words.pending.len > 0)
        mur_text_character (&answer->words.held, 0xfffd);
    mur_text_free (&answer->words.pending);
    if (answer->words.held.len > 0)
        sort_words (answer, true);
    for (size_t i = 0; i < answer->count; i++) {
        struct mur_block *block = &answer->blocks[i];
        size_t before = block->text.len;
        if (block->pending.len > 0)
            mur_text_character (&block->text, 0xfffd);
        mur_text_free (&block->pending);
        show (block, before);
    }
}

/* An input that broke off at the output cap is none; one that cannot be read goes back to the
 * model. Returns whether the call is kept. */
static bool
judge_call (struct mur_answer *answer, size_t at)
{
    struct mur_block *block = &answer->blocks[at];
    struct mur_text input = { 0 };
    char *why = NULL;
    bool is_cut = answer->stop_reason == max_tokens;
    if (is_cut && block->text.len == 0 && at + 1 == answer->count)
        return false;
    const char *text = block->text.data != NULL ? block->text.data : "";
    bool is_read = mur_mend_input (text, block->text.len, &input, &why);
    if (is_cut && (! is_read || block->name == NULL))
        return false;
    if (block->name == NULL) {
        free (why);
        why = mur_format ("the call names no tool");
    }
    if (block->id == NULL)
        block->id = unique_id (answer, NULL);
    if (block->name == NULL)
        block->name = copy_bytes (UNNAMED, strlen (UNNAMED));
    if (! is_read)
        mur_text_puts (&input, "{}");
    mur_text_free (&block->text);
    block->text = input;
    mur_text_string (&block->more, "input_error", why);
    free (why);
    return true;
}

static void
add_block (struct mur_text *to, const struct mur_block *block)
{
    static const char *const types[] = { "text", "thinking", "tool_call" };
    const char *text = block->text.data != NULL ? block->text.data : "";
    mur_text_comma (to);
    if (block->kind == MUR_BLOCK_OTHER) {
        mur_text_puts (to, text);
        return;
    }
    mur_text_puts (to, "{");
    mur_text_string (to, "type", types[block->kind]);
    if (block->kind == MUR_BLOCK_CALL) {
        mur_text_string (to, "id", block->id);
        mur_text_string (to, "name", block->name);
        mur_text_key (to, "input");
        mur_text_add (to, text, block->text.len);
    } else {
        mur_text_string (to, types[block->kind], text);
    }
    if (block->more.len > 0) {
        mur_text_comma (to);
        mur_text_add (to, block->more.data, block->more.len);
    }
    mur_text_puts (to, "}");
}

static void
add_usage (struct mur_text *to, const int64_t *usage)
{
    static const char *const names[MUR_USAGE_COUNT] = {
        [MUR_USAGE_INPUT] = "input_tokens",       [MUR_USAGE_OUTPUT] = "output_tokens",
        [MUR_USAGE_CACHED] = "cached_tokens",     [MUR_USAGE_CACHE_WRITE] = "cache_write_tokens",
        [MUR_USAGE_THINKING] = "thinking_tokens",
    };
    mur_text_key (to, "usage");
    mur_text_puts (to, "{");
    for (size_t i = 0; i < MUR_USAGE_COUNT; i++) {
        if (usage[i] < 0)
            continue;
        mur_text_key (to, names[i]);
        mur_text_printf (to, "%lld", (long long)usage[i]);
    }
    mur_text_puts (to, "}");
}

static void
hand_over_failure (struct mur_answer *answer, struct mur_result *out)
{
    struct mur_text to = { 0 };
    mur_text_puts (&to, "{\"stop_reason\":\"error\",\"content\":[]");
    mur_text_string (&to, "error", answer->error);
    add_usage (&to, answer->usage);
    mur_text_puts (&to, "}");
    mur_passed_text (out, &to);
    out->status = MUR_FAILED;
    out->summary = answer->error;
    if (answer->transient != MUR_TRANSIENT_UNTOLD)
        mur_metadata (out, "transient", answer->transient == MUR_TRANSIENT_YES ? "true" : "false");
}

/* What was written decides where the provider's word does not. */
static void
settle_stop (struct mur_answer *answer, bool has_calls, bool has_words)
{
    bool is_open = answer->stop_reason == NULL;
    bool may_end = answer->stop_word != NULL || answer->is_ended;
    if (has_calls && (! is_open || may_end))
        answer->stop_reason = tool_call;
    else if (is_open && may_end && has_words)
        answer->stop_reason = end_turn;
    if (answer->stop_reason != NULL)
        return;
    if (answer->stop_word != NULL)
        set_failure (answer, MUR_TRANSIENT_NO,
                     mur_format ("the provider ended its answer (%.80s) before it wrote anything",
                                 answer->stop_word));
    set_failure (answer, MUR_TRANSIENT_YES,
                 mur_format ("the provider's answer ended before it was complete"));
}

void
mur_answer_hand_over (struct mur_answer *answer, struct mur_result *out)
{
    struct mur_text content = { 0 };
    bool has_calls = false, has_words = false;
    close_texts (answer);
    for (size_t i = 0; i < answer->count && answer->error == NULL; i++) {
        struct mur_block *block = &answer->blocks[i];
        bool is_call = block->kind == MUR_BLOCK_CALL;
        if (is_call ? ! judge_call (answer, i) : block->text.len == 0 && block->more.len == 0)
            continue;
        add_block (&content, block);
        has_calls = has_calls || is_call;
        has_words = has_words || block->kind == MUR_BLOCK_TEXT;
    }
    if (answer->stop_reason == tool_call && ! has_calls) {
        /* A word for calls that are not there ends what is written, as an unknown one does. */
        answer->stop_reason = NULL;
        answer->stop_word = copy_bytes (tool_call, strlen (tool_call));
    }
    bool is_untold = answer->stop_reason == NULL;
    if (answer->error == NULL)
        settle_stop (answer, has_calls, has_words);
    if (answer->error != NULL) {
        mur_text_free (&content);
        hand_over_failure (answer, out);
        return;
    }
    struct mur_text to = { 0 };
    mur_text_puts (&to, "{");
    mur_text_string (&to, "stop_reason", answer->stop_reason);
    if (is_untold)
        mur_text_string (&to, "provider_stop_reason", answer->stop_word);
    mur_text_key (&to, "content");
    mur_text_puts (&to, "[");
    mur_text_add (&to, content.data, content.len);
    mur_text_puts (&to, "]");
    add_usage (&to, answer->usage);
    mur_text_puts (&to, "}");
    mur_text_free (&content);
    mur_passed_text (out, &to);
    if (answer->continuation_id != NULL)
        mur_metadata (out, "continuation_id", answer->continuation_id);
}

#endif
