/* SPDX-License-Identifier: Apache-2.0
 *
 * Host side of murmur:tool-registry/invoke@0.1.0: a script capsule calls a tool by name
 * (spec/artifacts.md 15.3).
 */
#pragma once

#include "host/tool.h"

struct tool_registry_host {
    void *ctx;
    /* Runs tool <name>; <data> and <log_path> may be NULL. Returns true with *result, or false with
     * *refusal, the text the guest gets as the error arm. Everything in <arena>. May block while it
     * watches guest_current_cancel (); a nested guest_call on this thread is allowed. */
    bool (*invoke) (void *ctx, const char *name, const char *data, size_t len, const char *log_path,
                    struct arena *arena, struct tool_result *result, const char **refusal);
};

/* Bind with a struct tool_registry_host * as its context. */
extern const struct host_interface host_tool_registry;
