/* SPDX-License-Identifier: Apache-2.0
 *
 * Ending one running session (spec/cli.md 3, spec/door.md 17).
 *
 * The door is asked first, because only it knows what will be left running; then SIGTERM, then
 * SIGKILL. Always true: pid and start time are checked again right before each signal; a process
 * group is never signalled; whatever else fails, the record is removed only once the process is
 * gone.
 */
#pragma once

#include "home/running.h"

/* Also prints what became of it. E-RUN-024. */
bool stop_session (const struct running_record *record, uint64_t timeout_s, struct mur_error **err);
