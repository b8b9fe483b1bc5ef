/* SPDX-License-Identifier: Apache-2.0
 *
 * Server-sent events as the door writes them (spec/door.md 8.1) and as its clients read them.
 */
#pragma once

#include "base/buf.h"

#include <stdint.h>

#define SSE_HEARTBEAT ":heartbeat\n\n"

/* Appends one event: "id: <id>\n" unless id is 0, "data: <json>\n", "\n". <json> is one line. */
void sse_append (struct buf *out, uint64_t id, const char *json, size_t len);

/* --- reading --- */

/* One event: its id text ("" when it had none) and its data lines joined by LF. Return false to
 * stop. */
typedef bool sse_event_fn (void *ctx, const char *id, const char *data, size_t len);

struct sse_parser {
    struct buf line;
    struct buf id;
    struct buf data;
    struct buf last_id; /* of the last event that had one */
    uint64_t retry_ms;  /* what the stream last said of coming back; 0: nothing */
    bool has_data;
    bool after_cr;
    size_t limit_bytes; /* of one event; 0 = 16 MiB */
};

/* Feeds bytes as they come. Returns false when the callback stopped it or an event is over the
 * limit. */
bool sse_feed (struct sse_parser *p, const char *bytes, size_t len, sse_event_fn *fn, void *ctx);
void sse_parser_free (struct sse_parser *p);
