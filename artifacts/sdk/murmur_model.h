/* SPDX-License-Identifier: Apache-2.0
 *
 * What a driver of a model provider's HTTP interface needs beside murmur_sdk.h: server-sent events,
 * the answer as it grows, and the call itself with every way it can fail.
 *
 * A driver writes the provider's request, names two functions that take a piece of the answer, and
 * calls mur_provider_call. Always true: what goes to the runtime is JSON by the letter, or a failed
 * call that says what the provider did.
 */
#ifndef MURMUR_MODEL_H
#define MURMUR_MODEL_H

#include "murmur_sdk.h"

/* --- Server-sent events: bytes in, in pieces of any size; the data of each event out --- */

struct mur_sse {
    void (*take) (void *context, const char *data, size_t len);
    void *context;
    struct mur_text line;
    struct mur_text data;
    bool has_data;
    bool is_after_cr;
    bool is_started;
};

void mur_sse_feed (struct mur_sse *sse, const char *bytes, size_t len);
/* The stream is over: an event whose last empty line is missing is handed on too. */
void mur_sse_end (struct mur_sse *sse);

/* --- The answer of one call --- */

enum mur_block_kind {
    MUR_BLOCK_TEXT,
    MUR_BLOCK_THINKING,
    MUR_BLOCK_CALL,
    MUR_BLOCK_OTHER,
};

struct mur_block {
    enum mur_block_kind kind;
    int64_t number;       /* the provider's own, -1 for none */
    struct mur_text text; /* text, thinking, a call's input as JSON, or the whole block as JSON */
    struct mur_text more; /* further members as JSON, without braces */
    char *id;
    char *name;
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

struct mur_answer {
    struct mur_block *blocks;
    size_t count;
    int64_t usage[MUR_USAGE_COUNT]; /* -1: not told */
    char *stop_reason; /* the runtime's word, or one it does not know; NULL: none yet */
    char *error;       /* NULL: none */
    enum mur_transient transient;
};

/* The block of that kind and number, made when there is none; valid until the next one is made. */
struct mur_block *
mur_answer_block (struct mur_answer *answer, enum mur_block_kind kind, int64_t number);
struct mur_block *mur_answer_find (struct mur_answer *answer, int64_t number);
struct mur_block *
mur_answer_add (struct mur_answer *answer, enum mur_block_kind kind, int64_t number);
/* Appends and streams it. NULL adds nothing. */
void mur_block_grow (struct mur_block *block, const char *piece);
/* The input of a call that came as JSON rather than in pieces of text. */
void mur_block_input (struct mur_block *block, const struct mur_json *json, mur_node input);
/* Both are known: the runtime may show that the call is being written. Takes the strings over. */
void mur_block_call (struct mur_block *block, char *id, char *name);
/* Keeps the number when it is one. */
void mur_answer_usage (struct mur_answer *answer, enum mur_usage which, const struct mur_json *json,
                       mur_node number);
/* The first failure stays. */
void mur_answer_fail (struct mur_answer *answer, enum mur_transient transient, const char *format,
                      ...) __attribute__ ((format (printf, 3, 4)));
/* A stop reason in the runtime's words by a table of pairs that ends with NULL; another is kept as
 * it is. */
void mur_answer_stop (struct mur_answer *answer, const struct mur_json *json, mur_node reason,
                      const char *const table[][2]);

/* --- The request --- */

/* True for a block of that type, of the runtime's or the provider's. */
bool mur_block_is (const struct mur_json *json, mur_node block, const char *type);

/* --- The call --- */

struct mur_provider {
    /* One event of the stream, or the whole answer; each is JSON, checked. */
    void (*take_event) (struct mur_answer *answer, const struct mur_json *json);
    void (*take_whole) (struct mur_answer *answer, const struct mur_json *json);
    const char *path;               /* below the endpoint, such as "/messages" */
    const char *version;            /* path of the version, such as "/v1" */
    bool is_versioned;              /* endpoints with a path name the version themselves */
    const char *header[2];          /* one more request header, or NULL */
    const char *const *own_members; /* members of the request that config may not set; NULL ends */
};

/* `inference.driver.config`; NULL when there is none. */
struct mur_json *mur_driver_config (void);
/* True unless config says `stream: false`. */
bool mur_driver_streams (const struct mur_json *config);
/* Adds `"tools"`, one object a tool: `open`, name, description, the schema under `schema_key`,
 * `close`; nothing when the runtime's request has none. */
void mur_driver_tools (const struct mur_json *json, struct mur_text *body, const char *open,
                       const char *schema_key, const char *close);
/* Adds the members of `config.request`. Returns false with the call failed when it names one of the
 * driver's own. */
bool mur_driver_request_members (const struct mur_provider *provider, const struct mur_json *config,
                                 struct mur_text *body, struct mur_result *out);
/* Sends the body and fills `out` with the answer in the runtime's form, or with the failure. */
void mur_provider_call (const struct mur_provider *provider, const struct mur_json *config,
                        const struct mur_text *body, struct mur_result *out);

#endif
