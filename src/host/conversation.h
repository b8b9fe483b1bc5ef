/* SPDX-License-Identifier: Apache-2.0
 *
 * Host side of murmur:conversation/read@0.2.0: a hook reads the conversation's record, newest first
 * (spec/artifacts.md 15.13).
 */
#pragma once

#include "host/hook.h"

struct conversation_page {
    struct hook_messages messages; /* newest first */
    const char *next_cursor;       /* NULL: the record ends here */
    uint32_t total;
};

struct conversation_host {
    void *ctx;
    /* True with *page, or false with *refusal: "not-granted", "invalid-cursor", "unavailable: ...".
     * <cursor> NULL: from the newest; <limit> is 1 to 100. Everything in <arena>. */
    bool (*read) (void *ctx, const char *cursor, uint32_t limit, struct arena *arena,
                  struct conversation_page *page, const char **refusal);
};

/* Bind with a struct conversation_host * as its context; a NULL context answers not-granted. */
extern const struct host_interface host_conversation;
