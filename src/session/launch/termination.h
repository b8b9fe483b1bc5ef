/* SPDX-License-Identifier: Apache-2.0
 *
 * Ending a running session from outside: the first SIGTERM or SIGINT, its deadline, or the end of
 * its spawner's or its formation's lifeline (docs/spec/session.md 15.2, docs/spec/spawn.md A10,
 * C7).
 *
 * One thread waits for the signal, the deadline, the lifelines and the teardown timer in one poll.
 * Always true: a termination begins once; a second signal or the timer ends the process at once,
 * leaving neither a child nor the runtime directory.
 */
#pragma once

#include "session/state/session.h"

/* Blocks the signals in every thread made from now on: before a launch does anything others would
 * have to undo. One that came is taken when listening begins. */
bool termination_arm (struct session *s, struct mur_error **err);
/* Begins at once when the deadline has passed; else starts listening. Before any task may start. */
bool termination_listen (struct session *s, struct mur_error **err);
/* The session's last line is about to be written: from here a cause is not recorded any more, it
 * only bounds what is left to do. */
void termination_settle (struct session *s);
/* Stops listening. The signals stay blocked: the process is on its way out. Safe when never armed.
 */
void termination_disarm (struct session *s);
