/* SPDX-License-Identifier: Apache-2.0
 *
 * From an attempt to a harness that runs: version, bridge, prompt, session, plan, environment,
 * files (docs/spec/session.md 6 steps 2-8).
 */
#pragma once

#include "session/harness/harness_run.h"

/* Starts it and writes harness_start. False with *err, or with *err unset when the task was
 * cancelled meanwhile; nothing runs then. E-RUN-034, E-RUN-007, E-IO-003. */
bool harness_launch (struct harness_run *run, struct mur_error **err);
/* Removes the files of the run. */
void harness_launch_clear (struct harness_run *run);
/* True when the harness's sessions are kept from task to task. */
bool harness_is_threaded (const struct session *s);
