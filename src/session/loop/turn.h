/* SPDX-License-Identifier: Apache-2.0
 *
 * One turn: a request, a response, and the calls it asks for (spec/session.md 5.2, 5.8).
 *
 * Callers: attempt.c.
 */
#pragma once

#include "session/conversation/request.h"
#include "session/state/running_task.h"

/* Runs one turn. True: another turn follows; false: the attempt has ended (t->ending and what
 * belongs to it are set). */
bool turn_run (struct session *s, struct running_task *t, struct request *request);
