/* SPDX-License-Identifier: Apache-2.0
 *
 * What a bundled driver makes of a provider's answer: built once for each driver. The first bytes
 * say how it travels, the rest is the answer. However it is cut into pieces, the driver makes the
 * same of it, and that is JSON of the runtime's form.
 */
#include "tests/fuzz/fuzzing.h"

#include "tests/native/driver_host.h"

#include <jansson.h>
#include <stdio.h>

static const char request[] =
    "{\"model\":\"some-model\",\"max_tokens\":1000,\"params\":{},\"system\":\"s\",\"messages\":["
    "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"go\"}]},"
    "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_call\",\"id\":\"call_0\",\"name\":\"f\","
    "\"input\":{}}]},{\"role\":\"tool\",\"tool_call_id\":\"call_0\",\"is_error\":false,"
    "\"content\":[{\"type\":\"text\",\"text\":\"done\"}]}]}";

static void
expect_form (const struct native_outcome *outcome)
{
    json_error_t error;
    json_t *body = json_loads (outcome->json, 0, &error);
    if (body == NULL)
        fprintf (stderr, "%s: %s\n", error.text, outcome->json);
    assert (json_is_object (body) && json_is_string (json_object_get (body, "stop_reason")));
    json_t *content = json_object_get (body, "content"), *block;
    size_t i;
    json_array_foreach (content, i, block)
    {
        const char *type = json_string_value (json_object_get (block, "type"));
        assert (type != NULL);
        if (strcmp (type, "tool_call") == 0)
            assert (json_is_object (json_object_get (block, "input")) &&
                    json_string_length (json_object_get (block, "id")) > 0 &&
                    json_string_length (json_object_get (block, "name")) > 0);
    }
    assert (outcome->requests == 1);
    json_decref (body);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    static const char *const types[] = { "text/event-stream", NULL, "application/json" };
    static const unsigned statuses[] = { 200, 200, 200, 429, 400, 503, 201, 302 };
    if (size < 2)
        return 0;
    struct native_answer answer = {
        .status = statuses[data[0] % 8],
        .content_type = types[data[0] / 8 % 3],
        .is_broken = data[0] / 24 % 2,
        .body = (const char *)data + 2,
        .len = size - 2,
    };
    setenv ("MURMUR_INFERENCE_ENDPOINT", "http://provider.example/v1", 1);
    struct native_outcome whole = native_call (request, &answer);
    expect_form (&whole);
    answer.piece = 1 + data[1] % 16;
    struct native_outcome pieces = native_call (request, &answer);
    assert (strcmp (whole.json, pieces.json) == 0 && whole.transient == pieces.transient);
    native_outcome_free (&whole);
    native_outcome_free (&pieces);
    return 0;
}
