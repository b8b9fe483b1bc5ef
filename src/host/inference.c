/* SPDX-License-Identifier: Apache-2.0 */
#include "host/inference.h"

#include <string.h>

static struct value
refused (struct arena *arena, const char *text)
{
    struct value payload = hook_text_value (arena, text, strlen (text));
    return value_err (arena, &payload);
}

/* run-inference: func (request: inference-request) -> result<inference-response, string> */
static bool
run_inference (void *ctx, struct arena *arena, const struct value *args, size_t arg_count _unused_,
               struct value *result, struct mur_error **err)
{
    const struct inference_host *host = ctx;
    struct inference_request request = { 0 };
    if (! hook_messages_from_value (value_field (&args[0], "messages"), arena, &request.messages))
        return mur_fail (err, E_RUN_001, "run-inference was given no list of messages");
    request.system_prompt = value_text (value_field (&args[0], "system-prompt"), NULL);
    request.model = value_text (value_field (&args[0], "model"), NULL);
    struct inference_response response = { 0 };
    const char *refusal = "there is no driver to ask";
    if (! host || ! host->run (host->ctx, &request, arena, &response, &refusal)) {
        *result = refused (arena, refusal);
        return true;
    }
    const struct value_field fields[] = {
        { "text", hook_text_value (arena, response.text, response.text_len) },
        { "model-used", value_string (arena, response.model_used) },
        { "input-tokens", value_u64 (response.input_tokens) },
        { "output-tokens", value_u64 (response.output_tokens) },
    };
    struct value record = value_record (arena, fields, ARRAY_LEN (fields));
    *result = value_ok (arena, &record);
    return true;
}

static const struct host_function functions[] = {
    { "run-inference", run_inference },
};

const struct host_interface host_inference = {
    "murmur:runtime/inference@0.4.0",
    functions,
    ARRAY_LEN (functions),
};
