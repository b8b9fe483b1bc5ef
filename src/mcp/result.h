/* SPDX-License-Identifier: Apache-2.0
 *
 * What a tool's result is to a reader: texts as they are, everything binary saved and named, links
 * as links, structure only where no text says the same.
 *
 * Always true: no base64 reaches the reader; what was written is bounded by the caller's cut alone.
 */
#pragma once

#include "base/json.h"
#include "mcp/protocol.h"

/* Keeps bytes; the name they are found by afterwards (owned), or NULL when they cannot be kept. */
typedef char *mcp_keep_fn (void *ctx, const char *mime, const void *data, size_t len);

struct mcp_result_reader {
    mcp_keep_fn *keep;
    void *ctx;
};

/* The result as a client of that revision may be handed it: its content and structure, whose parts
 * are of kinds the revision knows and whole. A new object, or NULL when some part is not. */
json_t *mcp_result_passed (const json_t *result, const struct mcp_revision *revision);
/* Appends it. False: the tool says that it failed. */
bool mcp_result_read (const json_t *result, const struct mcp_result_reader *r, struct buf *out);
