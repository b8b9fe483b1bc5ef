/* SPDX-License-Identifier: Apache-2.0
 *
 * A session's records on their way to a store, while it runs: for machines that are gone when it
 * is.
 *
 * Below <session>/ in the store: trace/000001.jsonl and on, closed parts of whole lines (1 MiB or
 * five seconds); blobs/<sha256>; at the end files/ (out, logs, hooks, completion.json) and last
 * complete.json, which lists all of it with sizes and digests. Always true: a session is complete
 * there iff complete.json is; what a store does not take is offered again, a part under the same
 * key with the same bytes; a store that is away costs the session one warning and the end a bounded
 * wait.
 */
#pragma once

#include "fs/root.h"
#include "trace/ship/record_store.h"

#define SHIP_COMPLETE "complete.json"

struct shipper;

struct ship_facts {
    const char *session_id, *capsule, *version;
    const char *parent_session_id; /* NULL: none */
    const char *delegation_id;     /* NULL: none */
};

/* Starts the thread. Takes <store>; <records> is borrowed until the end, the facts are copied. */
struct shipper *
shipper_new (struct record_store *store, struct fs_root *records, const struct ship_facts *facts);
/* Ships what is left and the last object, waiting at most <patience_ms>; a failure is one warning.
 * <status>: how the session ended. */
void shipper_end (struct shipper *s, const char *status, uint64_t patience_ms);
