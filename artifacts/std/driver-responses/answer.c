/* SPDX-License-Identifier: Apache-2.0
 *
 * What a server of the Responses form answers (answer.h).
 *
 * An answer is a list of items; each becomes a block that its events fill. What the events left
 * out is taken from the whole item, and from the whole answer, when they come.
 */
#include "answer.h"

#include <stdlib.h>
#include <string.h>

bool answer_continues;

/* --- Blocks and items --- */

static int64_t
number_of (const struct mur_json *json, mur_node event)
{
    return mur_json_int (json, mur_json_get (json, event, "output_index"), -1);
}

/* The block of an event's item: by its place, or the latest of its kind. */
static struct mur_block *
block_of (struct mur_answer *answer, enum mur_block_kind kind, int64_t number)
{
    for (size_t i = answer->count; i > 0; i--) {
        struct mur_block *block = &answer->blocks[i - 1];
        if (block->kind == kind && (number < 0 || block->number == number))
            return block;
    }
    return kind == MUR_BLOCK_CALL ? NULL : mur_answer_add (answer, kind, number);
}

static void
refuse (struct mur_answer *answer, const struct mur_json *json, mur_node words)
{
    char *refusal = mur_json_text (json, words);
    if (refusal != NULL && *refusal != '\0')
        mur_answer_fail (answer, MUR_TRANSIENT_NO, "the model refused to answer: %.500s", refusal);
    free (refusal);
}

/* The texts of a list of parts. */
static void
take_parts (struct mur_answer *answer, struct mur_block *block, const struct mur_json *json,
            mur_node parts)
{
    for (mur_node p = mur_json_first (json, parts); p >= 0; p = mur_json_next (json, p)) {
        char *type = mur_json_text (json, mur_json_get (json, p, "type"));
        if (mur_is_media (type))
            mur_answer_no_media (answer, type);
        free (type);
        refuse (answer, json, mur_json_get (json, p, "refusal"));
        mur_block_grow (block, json, mur_json_get (json, p, "text"));
    }
}

static void
take_call (struct mur_answer *answer, struct mur_block *block, const struct mur_json *json,
           mur_node item)
{
    char *id = mur_json_text (json, mur_json_get (json, item, "call_id"));
    char *name = mur_json_text (json, mur_json_get (json, item, "name"));
    mur_node arguments = mur_json_get (json, item, "arguments");
    if (id == NULL || *id == '\0') {
        free (id);
        id = mur_json_text (json, mur_json_get (json, item, "id"));
    }
    mur_answer_call (answer, block, id, name);
    if (block->text.len == 0) {
        mur_block_input (block, json, arguments);
        mur_block_grow (block, json, arguments);
    }
    free (name);
    free (id);
}

/* The item goes back as it came; its words are shown. */
static void
take_reasoning (struct mur_answer *answer, struct mur_block *block, const struct mur_json *json,
                mur_node item, bool is_done)
{
    if (is_done && block->text.len == 0) {
        take_parts (answer, block, json, mur_json_get (json, item, "summary"));
        take_parts (answer, block, json, mur_json_get (json, item, "content"));
    }
    if (! is_done)
        return;
    block->more.len = 0;
    mur_answer_keep (&block->more, "item", json, item);
}

/* The block of an item that began before: a call's by its id; the others' by their place and, where
 * there is none, the latest of its kind. */
static struct mur_block *
begun (struct mur_answer *answer, enum mur_block_kind kind, const struct mur_json *json,
       mur_node item, int64_t number)
{
    for (size_t i = answer->count; i > 0; i--) {
        struct mur_block *block = &answer->blocks[i - 1];
        bool is_place = number >= 0 ? block->number == number : block->number < 0;
        mur_node id = mur_json_get (json, item, "call_id");
        bool has_id = block->key != NULL && mur_json_kind (json, id) == MUR_JSON_STRING &&
                      ! mur_json_is (json, id, "");
        if (block->kind == kind && (has_id ? mur_json_is (json, id, block->key) : is_place))
            return block;
    }
    return NULL;
}

/* An item as it begins, or whole. */
static void
take_item (struct mur_answer *answer, const struct mur_json *json, mur_node item, int64_t number,
           bool is_done)
{
    static const struct {
        const char *type;
        enum mur_block_kind kind;
    } kinds[] = { { "message", MUR_BLOCK_TEXT },
                  { "reasoning", MUR_BLOCK_THINKING },
                  { "function_call", MUR_BLOCK_CALL } };
    char *type = mur_json_text (json, mur_json_get (json, item, "type"));
    enum mur_block_kind kind = MUR_BLOCK_OTHER;
    for (size_t i = 0; type != NULL && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp (type, kinds[i].type) == 0)
            kind = kinds[i].kind;
    struct mur_block *block =
        number >= 0 || is_done ? begun (answer, kind, json, item, number) : NULL;
    bool is_new = block == NULL;
    if (mur_is_media (type))
        mur_answer_no_media (answer, type);
    else if (type != NULL && *type != '\0' && (kind != MUR_BLOCK_OTHER || is_done)) {
        if (is_new)
            block = mur_answer_add (answer, kind, number);
        if (kind == MUR_BLOCK_CALL)
            take_call (answer, block, json, item);
        else if (kind == MUR_BLOCK_THINKING)
            take_reasoning (answer, block, json, item, is_done);
        else if (kind == MUR_BLOCK_OTHER && is_new)
            mur_answer_keep (&block->text, NULL, json, item);
        else if (kind == MUR_BLOCK_TEXT && is_done && block->text.len == 0)
            take_parts (answer, block, json, mur_json_get (json, item, "content"));
    }
    free (type);
}

/* --- The whole answer --- */

static void
take_usage (struct mur_answer *answer, const struct mur_json *json, mur_node response)
{
    mur_node usage = mur_json_get (json, response, "usage");
    mur_node input = mur_json_get (json, usage, "input_tokens_details");
    mur_node output = mur_json_get (json, usage, "output_tokens_details");
    mur_answer_usage (answer, MUR_USAGE_INPUT, json, mur_json_get (json, usage, "input_tokens"));
    mur_answer_usage (answer, MUR_USAGE_OUTPUT, json, mur_json_get (json, usage, "output_tokens"));
    mur_answer_usage (answer, MUR_USAGE_CACHED, json, mur_json_get (json, input, "cached_tokens"));
    mur_answer_usage (answer, MUR_USAGE_THINKING, json,
                      mur_json_get (json, output, "reasoning_tokens"));
    int64_t cached = answer->usage[MUR_USAGE_CACHED];
    if (cached > 0 && cached <= answer->usage[MUR_USAGE_INPUT])
        answer->usage[MUR_USAGE_INPUT] -= cached;
}

static void
take_stop (struct mur_answer *answer, const struct mur_json *json, mur_node response)
{
    mur_node status = mur_json_get (json, response, "status");
    mur_node details = mur_json_get (json, response, "incomplete_details");
    mur_node reason = mur_json_get (json, details, "reason");
    bool has_reason = mur_json_kind (json, reason) == MUR_JSON_STRING;
    if (mur_json_is (json, status, "incomplete") && ! has_reason)
        mur_answer_stop_word (answer, "length");
    else if (! mur_json_is (json, status, "in_progress") && ! mur_json_is (json, status, "queued"))
        mur_answer_stop (answer, json, has_reason ? reason : status);
}

/* True when the results of all calls can be given to the provider under the ids it gave them. */
static bool
has_own_ids (const struct mur_answer *answer)
{
    for (size_t i = 0; i < answer->count; i++) {
        const struct mur_block *block = &answer->blocks[i];
        if (block->kind == MUR_BLOCK_CALL &&
            (block->key == NULL || block->id == NULL || strcmp (block->key, block->id) != 0))
            return false;
    }
    return true;
}

/* What the provider keeps can be continued; what it does not would be lost without a word. */
static void
take_id (struct mur_answer *answer, const struct mur_json *json, mur_node response)
{
    mur_node store = mur_json_get (json, response, "store");
    bool is_stored = mur_json_bool (json, store, answer_continues) && has_own_ids (answer) &&
                     mur_json_is (json, mur_json_get (json, response, "status"), "completed");
    char *id = is_stored ? mur_json_text (json, mur_json_get (json, response, "id")) : NULL;
    free (answer->continuation_id);
    answer->continuation_id = id != NULL && *id != '\0' ? id : NULL;
    if (answer->continuation_id == NULL)
        free (id);
}

/* True when each block has a place of its own in the whole answer. */
static bool
has_places (const struct mur_answer *answer, size_t count)
{
    for (size_t i = 0; i < answer->count; i++) {
        int64_t number = answer->blocks[i].number,
                before = i > 0 ? answer->blocks[i - 1].number : -1;
        if (number <= before || (uint64_t)number >= count)
            return false;
    }
    return true;
}

/* Items that came without places are not told apart from those of the whole: they stand. */
static void
take_response (struct mur_answer *answer, const struct mur_json *json, mur_node response)
{
    mur_node output = mur_json_get (json, response, "output");
    answer->is_known = answer->is_known || output >= 0;
    if (! has_places (answer, mur_json_count (json, output)))
        output = -1;
    int64_t number = 0;
    for (mur_node n = mur_json_first (json, output); n >= 0; n = mur_json_next (json, n))
        take_item (answer, json, n, number++, true);
    take_usage (answer, json, response);
    take_id (answer, json, response);
    take_stop (answer, json, response);
}

void
answer_take_whole (struct mur_answer *answer, const struct mur_json *json)
{
    take_response (answer, json, 0);
}

/* --- Events --- */

static void
take_delta (struct mur_answer *answer, const struct mur_json *json, enum mur_block_kind kind)
{
    struct mur_block *block = block_of (answer, kind, number_of (json, 0));
    if (block == NULL) { /* its item never began */
        block = mur_answer_add (answer, kind, number_of (json, 0));
        mur_answer_call (answer, block, NULL, NULL);
    }
    mur_block_grow (block, json, mur_json_get (json, 0, "delta"));
}

/* The whole input of a call, for a server that sends no pieces of it. */
static void
take_arguments (struct mur_answer *answer, const struct mur_json *json)
{
    struct mur_block *block = block_of (answer, MUR_BLOCK_CALL, number_of (json, 0));
    if (block != NULL && block->text.len == 0)
        mur_block_grow (block, json, mur_json_get (json, 0, "arguments"));
}

/* The event says that it is over, whatever the status is. */
static void
take_ending (struct mur_answer *answer, const struct mur_json *json, mur_node response)
{
    take_response (answer, json, response);
    answer->is_ended = ! mur_answer_is_event (answer, json, "response.failed") &&
                       ! mur_answer_is_event (answer, json, "response.cancelled");
}

/* Events of a type that is not known are passed over: the provider may add some. */
void
answer_take_event (struct mur_answer *answer, const struct mur_json *json)
{
    static const struct {
        const char *type;
        enum mur_block_kind kind;
    } deltas[] = { { "response.output_text.delta", MUR_BLOCK_TEXT },
                   { "response.text.delta", MUR_BLOCK_TEXT },
                   { "response.reasoning_summary_text.delta", MUR_BLOCK_THINKING },
                   { "response.reasoning_text.delta", MUR_BLOCK_THINKING },
                   { "response.reasoning.delta", MUR_BLOCK_THINKING },
                   { "response.function_call_arguments.delta", MUR_BLOCK_CALL },
                   { "response.created", MUR_BLOCK_OTHER },
                   { "response.in_progress", MUR_BLOCK_OTHER },
                   { "response.queued", MUR_BLOCK_OTHER } };
    mur_node type = mur_json_get (json, 0, "type");
    mur_node item = mur_json_get (json, 0, "item"), response = mur_json_get (json, 0, "response");
    for (size_t i = 0; i < sizeof deltas / sizeof *deltas; i++)
        if (mur_answer_is_event (answer, json, deltas[i].type)) {
            if (deltas[i].kind != MUR_BLOCK_OTHER)
                take_delta (answer, json, deltas[i].kind);
            return;
        }
    if (mur_answer_is_event (answer, json, "response.function_call_arguments.done"))
        take_arguments (answer, json);
    else if (mur_answer_is_event (answer, json, "response.output_item.added"))
        take_item (answer, json, item, number_of (json, 0), false);
    else if (mur_answer_is_event (answer, json, "response.output_item.done"))
        take_item (answer, json, item, number_of (json, 0), true);
    else if (mur_answer_is_event (answer, json, "response.refusal.done"))
        refuse (answer, json, mur_json_get (json, 0, "refusal"));
    else if (mur_answer_is_event (answer, json, "response.completed") ||
             mur_answer_is_event (answer, json, "response.done") ||
             mur_answer_is_event (answer, json, "response.incomplete") ||
             mur_answer_is_event (answer, json, "response.failed") ||
             mur_answer_is_event (answer, json, "response.cancelled"))
        take_ending (answer, json, response);
    else if (type < 0 && mur_json_is (json, mur_json_get (json, 0, "object"), "response"))
        take_response (answer, json, 0);
}
