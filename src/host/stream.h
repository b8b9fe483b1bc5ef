/* SPDX-License-Identifier: Apache-2.0
 *
 * Host side of murmur:stream/events@0.1.0: what a driver or tool reports while it runs
 * (spec/artifacts.md 15.9).
 *
 * The functions never fail and return nothing; which of them count is the session's business.
 */
#pragma once

#include "engine/engine.h"

/* Any callback may be NULL: that event is dropped. Called on the guest's thread; must not block. */
struct stream_host {
    void *ctx;
    void (*chunk) (void *ctx, const char *text, size_t len);
    void (*thinking_chunk) (void *ctx, const char *text, size_t len);
    void (*tool_call_started) (void *ctx, const char *id, const char *name);
    /* <bytes>: size of the call's input so far, as the guest counts it. */
    void (*tool_call_input_bytes) (void *ctx, const char *id, uint64_t bytes);
};

/* Bind with a struct stream_host * as its context; a NULL context drops everything. */
extern const struct host_interface host_stream;
