/* SPDX-License-Identifier: Apache-2.0 */
#include "host/tool_registry.h"

/* invoke: func (name: string, input: tool-input) -> result<tool-result, string> */
static bool
invoke (void *ctx, struct arena *arena, const struct value *args, size_t arg_count _unused_,
        struct value *result, struct mur_error **err)
{
    const struct tool_registry_host *host = ctx;
    if (! host)
        return mur_fail (err, E_RUN_001, "no tool registry here");
    size_t len;
    const char *name = value_text (&args[0], NULL);
    const char *data = value_text (value_field (&args[1], "data"), &len);
    const char *log_path = value_text (value_field (&args[1], "log-path"), NULL);
    struct tool_result tool = { 0 };
    const char *refusal = NULL;
    if (host->invoke (host->ctx, name, data, len, log_path, arena, &tool, &refusal)) {
        struct value record = tool_result_to_value (arena, &tool);
        *result = value_ok (arena, &record);
    } else {
        struct value text = value_string (arena, refusal ? refusal : "refused");
        *result = value_err (arena, &text);
    }
    return true;
}

static const struct host_function functions[] = {
    { "invoke", invoke },
};

const struct host_interface host_tool_registry = {
    "murmur:tool-registry/invoke@0.1.0",
    functions,
    ARRAY_LEN (functions),
};
