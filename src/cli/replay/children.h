/* SPDX-License-Identifier: Apache-2.0
 *
 * `mur replay --deep`: the sessions that a session started, and the other members of its formation,
 * each replayed by a process of its own.
 *
 * Always true: a formation is gone through once, by who was asked first.
 */
#pragma once

#include "replay/record/record.h"

/* Replays every child, and theirs; <work_root> is where members of its formation are looked for
 * first. [{session_id, member, verdict, first, children} or {session_id, member, error}]; member is
 * null of a child. *is_good: none of them ran otherwise. Owned. */
json_t *
children_replay (const struct record *r, const char *work_root, const char *tools, bool *is_good);
void children_print (const json_t *children, unsigned level);
