/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur replay --deep`: the sessions that a session started, each replayed by a process of its own.
 */
#pragma once

#include "replay/record/record.h"

/* Replays every child, and theirs. [{session_id, verdict, first, children} or {session_id, error}].
 * *is_good: none of them ran otherwise. Owned. */
json_t *children_replay (const struct record *r, const char *tools, bool *is_good);
void children_print (const json_t *children, unsigned level);
