/* SPDX-License-Identifier: Apache-2.0 */
#include "host/tokens.h"

#include "base/tokens.h"

/* count: func (text: string) -> u64 */
static bool
count (void *ctx _unused_, struct arena *arena _unused_, const struct value *args,
       size_t arg_count _unused_, struct value *result, struct mur_error **err _unused_)
{
    *result = value_u64 (tokens_count (args[0].string.data, args[0].string.len));
    return true;
}

static const struct host_function functions[] = {
    { "count", count },
};

const struct host_interface host_tokens = {
    "murmur:runtime/tokens@0.4.0",
    functions,
    ARRAY_LEN (functions),
};
