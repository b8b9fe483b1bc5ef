/* SPDX-License-Identifier: Apache-2.0
 *
 * The children of a task as a round waits for them, takes their outcomes, or ends them
 * (docs/spec/spawn.md A18). Task loop only.
 */
#pragma once

#include "session/handoff/delegations.h"

/* How many a round would deliver, and how many of them are still out. <set> may be NULL. */
size_t delegations_held (struct delegations *set);
size_t delegations_out (struct delegations *set);
/* Sleeps until something was told since <*seen>, for half a second at most, and ends what nothing
 * was heard of for too long. */
void delegations_sleep (struct delegations *set, uint64_t *seen);
/* Closes all that are held: their ids and what the model reads of them are appended. */
void delegations_deliver (struct delegations *set, json_t *ids, struct buf *text);
/* Ends all that are held, in one grace. One that had ended by itself keeps its outcome. */
void delegations_end (struct delegations *set, const char *reason);
