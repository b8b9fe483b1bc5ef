/* SPDX-License-Identifier: Apache-2.0
 *
 * What came of a delegation, from the child's files: its record, its answer, and the text the model
 * reads (docs/spec/spawn.md A18).
 *
 * Always true: files are opened below directories held since the launch, through no link, and never
 * by a path the child wrote; everything the child wrote is inside the fence.
 */
#pragma once

#include "session/handoff/delegations.h"

/* Reads record and answer of a child that has ended (or is left to end), appends what the model
 * reads, and tells outcome and reason (owned, NULL without) for the trace. */
const char *delegation_append_outcome (struct session *s, const struct delegation *d,
                                       struct buf *text, char **reason);
/* The answer a child left in its files, whole; NULL with *reason (owned) when there is none. */
char *delegation_answer (const struct delegation *d, size_t *len, char **reason);
