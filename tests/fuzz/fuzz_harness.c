/* SPDX-License-Identifier: Apache-2.0
 *
 * What a bundled driver makes of a harness's output: built once for each driver. The first byte
 * says how the run is set up, the rest is what the harness prints, line by line. Whatever the lines
 * are, the run has one end, and each request of a protocol the driver speaks is answered exactly
 * once: a harness that is left without an answer waits for ever.
 */
#include "tests/fuzz/fuzzing.h"

#include "tests/native/process_host.h"

#include <jansson.h>

static const char *const configs[] = {
    NULL,
    "{\"$rules\":{\"folder\":\"/folder\",\"shell\":[\"ls\",\"git\"],\"read_only\":[\"kept\"],\"walls\":"
    "true,\"network\":false,\"approvals\":true}}",
    "{\"$gateway\":{\"base_url\":\"http://127.0.0.1:1/v1\",\"placeholder\":\"murmur-x\"},\"$rules\":{"
    "\"folder\":\"/folder\",\"shell\":[],\"read_only\":[],\"walls\":false,\"network\":true,"
    "\"approvals\":false}}",
    "{\"approval_policy\":\"on-request\",\"mode\":\"code\"}",
};

/* JSON-RPC of an agent, or a control request: what waits for an answer. */
static bool
is_request (const json_t *line)
{
    const json_t *method = json_object_get (line, "method"), *id = json_object_get (line, "id");
    return json_is_string (method) && (json_is_integer (id) || json_is_string (id));
}

/* The letter of JSON, each key once: readers that differ about anything else are not compared. */
static json_t *
plain_json (const char *line, size_t len)
{
    json_t *value = memchr (line, '\0', len) == NULL
                        ? json_loadb (line, len, JSON_REJECT_DUPLICATES, NULL)
                        : NULL;
    if (json_is_object (value))
        return value;
    json_decref (value);
    return NULL;
}

static void
take_line (const char *line, size_t len, bool speaks_rpc)
{
    struct mur_text text = { 0 };
    mur_text_utf8 (&text, line, len); /* as the runtime hands it over */
    const char *handed = text.data != NULL ? text.data : "";
    json_t *value = plain_json (handed, text.len);
    size_t answers = native_process_line (handed, text.len);
    if (speaks_rpc && value != NULL && is_request (value))
        assert (answers == 1);
    if (json_is_string (json_object_get (value, "type")) &&
        strcmp (json_string_value (json_object_get (value, "type")), "control_request") == 0)
        assert (answers <= 1);
    json_decref (value);
    mur_text_free (&text);
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    static const char *const versions[] = { "2.1.197 (Claude Code)", "0.0.1" };
    if (size == 0)
        return 0;
    const struct native_run run = { .config = configs[data[0] % 4],
                                    .version = versions[data[0] / 4 % 2],
                                    .is_resumed = data[0] / 8 % 2,
                                    .has_bridge = data[0] / 16 % 2 };
    struct mur_harness harness = { 0 };
    mur_process_describe (&harness);
    bool is_acp = strcmp (harness.harness, "acp") == 0,
         is_server = strcmp (harness.harness, "codex") == 0 && data[0] % 4 % 2 == 1;
    if (native_process_begin (&run)) {
        char *text = fuzz_text (data + 1, size - 1);
        for (size_t at = 0; at < size - 1;) {
            const char *end = memchr (text + at, '\n', size - 1 - at);
            size_t len = end != NULL ? (size_t)(end - text) - at : size - 1 - at;
            take_line (text + at, len, is_acp || is_server);
            at += len + 1;
        }
        free (text);
    }
    native_process_end ("the end of what it wrote");
    return 0;
}
