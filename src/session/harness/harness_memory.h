/* SPDX-License-Identifier: Apache-2.0
 *
 * Which session of the harness belongs to which context: kept for the launch, and beside the
 * conversation records as harness-session.json (docs/spec/session.md 6 step 5, 11.4).
 *
 * Always true: what this launch learnt wins over the file; a file that cannot be read is no
 * session; nothing here fails a task.
 */
#pragma once

#include "host/process_driver.h"

#include <stdbool.h>
#include <stdint.h>

#define HARNESS_SESSION_FILE "harness-session.json"

struct harness_memory;

/* <store>: the record's name; NULL: nothing is kept beyond this launch. */
struct harness_memory *harness_memory_new (const char *store);
void harness_memory_free (struct harness_memory *m);

/* The session of a context, or NULL. Owned. <used>: tokens it had used in
 * all when it was kept, where it counts so; may be NULL. */
char *harness_memory_find (const struct harness_memory *m, const char *context_id,
                           uint64_t used[USAGE_MEMBERS]);
/* Keeps it, <used> (NULL: nobody counts) with it. False when the file could not be written; the
 * launch remembers it all the same. */
bool
harness_memory_keep (struct harness_memory *m, const char *context_id, const char *session_id,
                     const char *harness, const char *driver, const uint64_t used[USAGE_MEMBERS]);
/* Drops it; returns what was dropped, owned, or NULL. */
char *harness_memory_forget (struct harness_memory *m, const char *context_id);
/* Where the file of a context lies, for messages. Owned. */
char *harness_memory_path (const struct harness_memory *m, const char *context_id);
