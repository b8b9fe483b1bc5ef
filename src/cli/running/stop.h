/* SPDX-License-Identifier: Apache-2.0
 *
 * Ending what runs, for `mur stop`: one session, or a whole formation (spec/cli.md 3).
 */
#pragma once

#include "home/running.h"

/* cmd_stop.c: asks the door, signals, waits, removes the record and prints what became of it.
 * E-RUN-024. */
bool stop_session (const struct running_record *record, uint64_t timeout_s, struct mur_error **err);

/* stop_formation.c: signals the launcher its members name, waits for all of them; members that were
 * started by hand are stopped one by one. E-RUN-022 (no such formation runs), E-RUN-024, E-RUN-028.
 */
bool stop_formation (const char *formation_id, uint64_t timeout_s, struct mur_error **err);
