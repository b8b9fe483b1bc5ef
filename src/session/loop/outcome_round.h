/* SPDX-License-Identifier: Apache-2.0
 *
 * Work a task has handed off, to children and to other members: one wait for all of it, one round
 * that goes on with every outcome, one end (docs/spec/session.md 4.5 step 4, docs/spec/spawn.md
 * A18, C8).
 */
#pragma once

#include "session/state/running_task.h"

/* After an attempt: when it ended well, a turn is left and something is out, waits for all of it
 * and puts the outcomes into the conversation as one message. True: the attempt goes on. In every
 * other ending children are ended and calls abandoned. */
bool outcome_round_continue (struct session *s, struct running_task *t);
