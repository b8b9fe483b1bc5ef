/* SPDX-License-Identifier: Apache-2.0
 *
 * Records of conversations that nobody goes on with: contexts the door made itself, in a session
 * that begins each task anew. The last PASSING_KEPT are kept; without a bound a capsule that is
 * asked once a second would leave a folder each time, for ever.
 *
 * Always true: the first of a session stays (--resume finds it), and so does a record that anybody
 * wrote to since its task ended.
 */
#pragma once

#include "base/ids.h"
#include "session/conversation/conversation.h"

#include <stddef.h>
#include <stdint.h>

#define PASSING_KEPT 64

struct passing_record {
    struct id context;
    uint64_t bytes; /* as its task left it */
};

struct passing_records {
    struct passing_record ring[PASSING_KEPT];
    size_t noted; /* in all, the first included */
};

/* Notes the record of a task that ended and removes the one that is too old now, from the same
 * store. A record that was never written is not noted. */
void passing_note (struct passing_records *p, const struct conversation *ended);
