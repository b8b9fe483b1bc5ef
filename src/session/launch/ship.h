/* SPDX-License-Identifier: Apache-2.0
 *
 * When a session's records go to a store of --records-store: from before its first line to after
 * its last file (docs/spec/records.md 15).
 */
#pragma once

#include "session/state/session.h"

/* Nothing without a store. E-IO-003: an address that is none, a folder that is not there. */
bool ship_begin (struct session *s, struct mur_error **err);
/* Nothing is written to the records any more; waits for the store a bounded while. */
void ship_end (struct session *s, const char *exit_status);
