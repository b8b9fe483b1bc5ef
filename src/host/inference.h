/* SPDX-License-Identifier: Apache-2.0
 *
 * Host side of murmur:runtime/inference@0.4.0: a hook asks the session's own driver for one
 * completion (spec/artifacts.md 15.11).
 */
#pragma once

#include "host/hook.h"

struct inference_request {
    struct hook_messages messages;
    const char *system_prompt; /* NULL: none */
    const char *model;         /* NULL: the primary model */
};

struct inference_response {
    const char *text;
    size_t text_len;
    const char *model_used;
    uint64_t input_tokens, output_tokens;
};

struct inference_host {
    void *ctx;
    /* True with *response, or false with *refusal, the error arm's text. Everything in <arena>. May
     * block while it watches guest_current_cancel (); a nested guest_call is allowed. */
    bool (*run) (void *ctx, const struct inference_request *request, struct arena *arena,
                 struct inference_response *response, const char **refusal);
};

/* Bind with a struct inference_host * as its context; a NULL context answers an error. */
extern const struct host_interface host_inference;
