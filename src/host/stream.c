/* SPDX-License-Identifier: Apache-2.0 */
#include "host/stream.h"

/* emit-chunk: func (chunk: string) */
static bool
emit_chunk (void *ctx, struct arena *arena _unused_, const struct value *args,
            size_t arg_count _unused_, struct value *result _unused_,
            struct mur_error **err _unused_)
{
    const struct stream_host *host = ctx;
    if (host && host->chunk)
        host->chunk (host->ctx, args[0].string.data, args[0].string.len);
    return true;
}

/* emit-thinking-chunk: func (chunk: string) */
static bool
emit_thinking_chunk (void *ctx, struct arena *arena _unused_, const struct value *args,
                     size_t arg_count _unused_, struct value *result _unused_,
                     struct mur_error **err _unused_)
{
    const struct stream_host *host = ctx;
    if (host && host->thinking_chunk)
        host->thinking_chunk (host->ctx, args[0].string.data, args[0].string.len);
    return true;
}

/* tool-call-started: func (id: string, name: string) */
static bool
tool_call_started (void *ctx, struct arena *arena _unused_, const struct value *args,
                   size_t arg_count _unused_, struct value *result _unused_,
                   struct mur_error **err _unused_)
{
    const struct stream_host *host = ctx;
    if (host && host->tool_call_started)
        host->tool_call_started (host->ctx, args[0].string.data, args[1].string.data);
    return true;
}

/* tool-call-input-bytes: func (id: string, bytes: u64) */
static bool
tool_call_input_bytes (void *ctx, struct arena *arena _unused_, const struct value *args,
                       size_t arg_count _unused_, struct value *result _unused_,
                       struct mur_error **err _unused_)
{
    const struct stream_host *host = ctx;
    if (host && host->tool_call_input_bytes)
        host->tool_call_input_bytes (host->ctx, args[0].string.data, args[1].u);
    return true;
}

static const struct host_function functions[] = {
    { "emit-chunk", emit_chunk },
    { "emit-thinking-chunk", emit_thinking_chunk },
    { "tool-call-started", tool_call_started },
    { "tool-call-input-bytes", tool_call_input_bytes },
};

const struct host_interface host_stream = {
    "murmur:stream/events@0.1.0",
    functions,
    ARRAY_LEN (functions),
};
