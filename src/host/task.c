/* SPDX-License-Identifier: Apache-2.0 */
#include "host/task.h"

/* request-input: func (prompt: string) -> string */
static bool
request_input (void *ctx, struct arena *arena, const struct value *args, size_t arg_count _unused_,
               struct value *result, struct mur_error **err)
{
    const struct task_host *host = ctx;
    if (! host || ! host->request_input)
        return mur_fail (err, E_RUN_001, "request-input needs a task that came through the door");
    size_t len = 0;
    const char *text =
        host->request_input (host->ctx, args[0].string.data, args[0].string.len, arena, &len, err);
    if (! text)
        return mur_fail (err, E_RUN_001, "request-input was not answered");
    *result = value_string_n (arena, text, len);
    return true;
}

static const struct host_function functions[] = {
    { "request-input", request_input },
};

const struct host_interface host_task = {
    "murmur:task/task@0.1.0",
    functions,
    ARRAY_LEN (functions),
};
