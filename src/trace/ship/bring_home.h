/* SPDX-License-Identifier: Apache-2.0
 *
 * A session's records out of a store, into a records folder of this machine.
 *
 * Always true: what complete.json lists is compared with it before it is written; nothing a store
 * names lies outside the folder; trace.jsonl is replaced in one rename, so a session that still
 * runs may be brought home again.
 */
#pragma once

#include "base/buf.h"
#include "fs/root.h"
#include "trace/ship/record_store.h"

struct brought {
    bool is_complete;
    size_t parts, files;
    uint64_t bytes;
    char *status;         /* NULL: not said */
    struct strv children; /* sessions its trace says it started */
};
void brought_clear (struct brought *b);
#define _cleanup_brought_ _cleanup_ (brought_clear)

/* False without *err: the store has nothing of this session. E-REG-002 (other bytes than were
 * shipped), E-IO-003. */
bool bring_home (struct record_store *s, const char *session_id, struct fs_root *records,
                 struct brought *out, struct mur_error **err);
