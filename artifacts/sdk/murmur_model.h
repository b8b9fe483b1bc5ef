/* SPDX-License-Identifier: Apache-2.0
 *
 * What a driver of a model provider's HTTP interface needs beside murmur_sdk.h: the call itself
 * with every way it can fail, and the parts of a request that providers share. The answer as it
 * grows is murmur_answer.h's.
 *
 * A driver writes the provider's request, names two functions that take a piece of the answer, and
 * calls mur_provider_call. Always true: what goes to the runtime is JSON by the letter, or a failed
 * call that says what the provider did.
 */
#ifndef MURMUR_MODEL_H
#define MURMUR_MODEL_H

#include "murmur_answer.h"
#include "murmur_schema.h"
#include "murmur_sdk.h"
#include "murmur_sse.h"

struct mur_provider {
    /* One event of the stream, or the whole answer; each is JSON, checked. */
    void (*take_event) (struct mur_answer *answer, const struct mur_json *json);
    void (*take_whole) (struct mur_answer *answer, const struct mur_json *json);
    const char *path;    /* below the endpoint, such as "/messages" */
    const char *version; /* path of the version, such as "/v1" */
    /* mur_widen_input where the names of inputs were narrowed, or NULL. */
    void (*name_inputs) (const struct mur_json *request, const char *tool, struct mur_text *input);
    bool is_versioned;              /* endpoints with a path name the version themselves */
    const char *header[2];          /* one more request header, or NULL */
    const char *const *own_members; /* members of the request that config may not set; NULL ends */
};

/* --- The request --- */

/* `inference.driver.config`; NULL when there is none. */
struct mur_json *mur_driver_config (void);
/* True unless config says `stream: false`. */
bool mur_driver_streams (const struct mur_json *config);
/* True for a block of that type, of the runtime's or the provider's. */
bool mur_block_is (const struct mur_json *json, mur_node block, const char *type);
/* False, with the call failed by its name, when a message holds an image or other media. */
bool mur_driver_takes_content (const struct mur_json *json, struct mur_result *out);
/* Adds `"tools"`, one object a tool: `open`, name, description, the schema in that form under
 * `schema_key`, `close`; nothing when the runtime's request has none. */
void mur_driver_tools (const struct mur_json *json, struct mur_text *body, const char *open,
                       const char *schema_key, enum mur_schema_form form, const char *close);
/* Adds the members of `config.request`. Returns false with the call failed when it names one of the
 * driver's own. */
bool mur_driver_request_members (const struct mur_provider *provider, const struct mur_json *config,
                                 struct mur_text *body, struct mur_result *out);
/* `config.cache` as the marker of a block that the provider is asked to remember, with a comma
 * before it: `,"cache_control":{...}`; NULL when config says `cache: false`, or nothing and
 * `by_default` is false. */
char *mur_driver_cache_marker (const struct mur_json *config, bool by_default);

/* --- The call --- */

/* Sends the body and fills `out` with the answer in the runtime's form, or with the failure.
 * `request` is the runtime's. */
void mur_provider_call (const struct mur_provider *provider, const struct mur_json *request,
                        const struct mur_json *config, const struct mur_text *body,
                        struct mur_result *out);

#endif
