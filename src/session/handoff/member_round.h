/* SPDX-License-Identifier: Apache-2.0
 *
 * The member calls of a task as a round waits for them, takes their answers, or abandons them
 * (docs/spec/spawn.md C8). Task loop only, but for the poke.
 */
#pragma once

#include "session/handoff/member_calls.h"

/* How many of them are out. <set> may be NULL here and in what follows. */
size_t member_calls_out (struct member_calls *set);
/* Sleeps until something changed since <*seen>, for half a second at most. */
void member_calls_sleep (struct member_calls *set, uint64_t *seen);
/* Makes a sleeper look again. */
void member_calls_poke (struct member_calls *set);
/* Closes all that were answered: their ids and what the model reads of them are appended. */
void member_calls_deliver (struct member_calls *set, const struct fence_word *word, json_t *ids,
                           struct buf *text);
/* Abandons all that are out; one that was answered keeps its status. */
void member_calls_abandon (struct member_calls *set);
