/* SPDX-License-Identifier: Apache-2.0
 *
 * A model's answer as it grows, and what of it goes to the runtime.
 *
 * Providers differ in what they leave out, repeat and misspell; what a piece means is the driver's,
 * what a whole answer is worth is decided here. Always true: what is handed over is JSON by the
 * letter, each call has an id of its own and an input that is an object, or says why it has none
 * (`input_error`), and an answer that was complete is never lost to what came behind it.
 */
#ifndef MURMUR_ANSWER_H
#define MURMUR_ANSWER_H

#include "murmur_sdk.h"

enum mur_block_kind {
    MUR_BLOCK_TEXT,
    MUR_BLOCK_THINKING,
    MUR_BLOCK_CALL,
    MUR_BLOCK_OTHER,
};

struct mur_block {
    enum mur_block_kind kind;
    int64_t number; /* the provider's own, -1 for none */
    struct mur_text
        text; /* text, thinking, a call's input as it came, or the whole block as JSON */
    struct mur_text more;    /* further members as JSON, without braces */
    char *id;                /* a call's, unique in the conversation; NULL: not begun */
    char *key;               /* the id as the provider gave it; NULL: none */
    char *name;              /* NULL: none so far */
    struct mur_text pending; /* half a character at the end of the last piece */
};

enum mur_usage {
    MUR_USAGE_INPUT,
    MUR_USAGE_OUTPUT,
    MUR_USAGE_CACHED,
    MUR_USAGE_CACHE_WRITE,
    MUR_USAGE_THINKING,
    MUR_USAGE_COUNT,
};

/* Whether the same call may do better a moment later. */
enum mur_transient {
    MUR_TRANSIENT_UNTOLD,
    MUR_TRANSIENT_NO,
    MUR_TRANSIENT_YES,
};

/* Where the words of an answer are: models that think aloud may do so in `<think>` before them. */
enum mur_words_place {
    MUR_WORDS_BEGIN,
    MUR_WORDS_THINKING,
    MUR_WORDS_BEHIND, /* line ends behind the thinking are no part of the answer */
    MUR_WORDS_ANSWER,
};

struct mur_words {
    enum mur_words_place place;
    struct mur_text held;    /* what may be a part of a tag */
    struct mur_text pending; /* half a character */
};

/* Numbers of the blocks that mur_answer_words fills. */
#define MUR_TEXT_NUMBER     -1
#define MUR_THINKING_NUMBER -2

struct mur_answer {
    const struct mur_json *request; /* the runtime's; ids of its calls are taken */
    const char *event;              /* the line that names the present event; NULL: none */
    struct mur_block *blocks;
    size_t count;
    struct mur_words words;
    int64_t usage[MUR_USAGE_COUNT]; /* -1: not told */
    const char *stop_reason;        /* the runtime's word; NULL: none yet */
    char *stop_word;                /* the provider's, when it is none that is known */
    bool is_ended;                  /* the provider said that all was sent */
    bool is_known;                  /* some of it is as the driver's protocol has it */
    bool is_misplaced;              /* what was asked is no such provider, or elsewhere */
    char *continuation_id;          /* NULL: none */
    char *error;                    /* NULL: none */
    enum mur_transient transient;
};

#define MUR_ANSWER_INIT(from)                                                                      \
    {                                                                                              \
        .request = (from), .usage = { -1, -1, -1, -1, -1 }                                         \
    }

/* True for an event of this type: its own word, or the line above it where it has none. The answer
 * is known for the driver's by it. */
bool mur_answer_is_event (struct mur_answer *answer, const struct mur_json *json, const char *type);
/* The block of that kind and number, made when there is none; valid until the next one is made. */
struct mur_block *
mur_answer_block (struct mur_answer *answer, enum mur_block_kind kind, int64_t number);
/* The last one of that number, or NULL. */
struct mur_block *mur_answer_find (struct mur_answer *answer, int64_t number);
struct mur_block *
mur_answer_add (struct mur_answer *answer, enum mur_block_kind kind, int64_t number);
/* Appends a string and streams it; halves of characters wait for the next piece. Anything but a
 * string adds nothing. */
void mur_block_grow (struct mur_block *block, const struct mur_json *json, mur_node piece);
/* The same with a text of the driver's own; NULL adds nothing. */
void mur_block_grow_text (struct mur_block *block, const char *piece);
/* The answer's words; thinking in front of them, between `<think>` tags, becomes thinking. */
void mur_answer_words (struct mur_answer *answer, const struct mur_json *json, mur_node piece);
/* The input of a call that came as JSON rather than in pieces of text. */
void mur_block_input (struct mur_block *block, const struct mur_json *json, mur_node input);
/* The call's id and name, each NULL or empty when they are not known; a later call adds what was
 * missing. Once the name is there the runtime may show that the call is being written. */
void mur_answer_call (struct mur_answer *answer, struct mur_block *block, const char *id,
                      const char *name);
/* True when the call's input so far is a whole object. */
bool mur_block_is_whole (const struct mur_block *block);
/* Adds JSON of the provider's that is to be kept as it came, under the key (NULL: none): what no
 * reader takes in it is mended, and nothing is added where it cannot be. */
void
mur_answer_keep (struct mur_text *to, const char *key, const struct mur_json *json, mur_node node);
/* Keeps the number when it is one. */
void mur_answer_usage (struct mur_answer *answer, enum mur_usage which, const struct mur_json *json,
                       mur_node number);
/* The first failure stays; none is noted once the provider has ended its answer. */
void mur_answer_fail (struct mur_answer *answer, enum mur_transient transient, const char *format,
                      ...) __attribute__ ((format (printf, 3, 4)));
/* The provider's word for the end, in any of the spellings servers use. A word that is not known is
 * an end when something was written, and is told to the runtime. */
void mur_answer_stop (struct mur_answer *answer, const struct mur_json *json, mur_node reason);
void mur_answer_stop_word (struct mur_answer *answer, const char *word);
/* Fails for a kind of content that murmur cannot keep, by its name: "image", "audio" ... */
void mur_answer_no_media (struct mur_answer *answer, const char *type);
/* True for "image", "image_url", "input_audio", "document", ... */
bool mur_is_media (const char *type);

/* Fills `out` with the answer in the runtime's form, or with the failure. */
void mur_answer_hand_over (struct mur_answer *answer, struct mur_result *out);

#endif
