/* SPDX-License-Identifier: Apache-2.0
 *
 * Host side of murmur:message/send@0.1.0: a script capsule sends one A2A message to a peer
 * (spec/artifacts.md 15.7).
 *
 * The callback decides (capabilities.network.allow) and sends.
 */
#pragma once

#include "engine/engine.h"

struct peer_message {
    const char *message_id;
    const char *context_id; /* NULL for none */
    const char *text;
    size_t text_len;
};

struct peer_task {
    const char *task_id;
    const char *context_id;
    const char *state;
};

struct message_host {
    void *ctx;
    /* Returns true with *task, or false with *refusal, the error arm's text ("network policy:
     * ..."). All in <arena>. May block while it watches guest_current_cancel (). */
    bool (*send) (void *ctx, const char *peer_url, const struct peer_message *message,
                  struct arena *arena, struct peer_task *task, const char **refusal);
};

/* Bind with a struct message_host * as its context. */
extern const struct host_interface host_message;
