/* SPDX-License-Identifier: Apache-2.0
 *
 * One turn: a request, a response, and the calls it asks for (docs/spec/session.md 5.2, 5.8).
 *
 * The steps are the spec's, in its order. Always true: a failed call is no turn; the assistant
 * message and the results of its calls enter the list together, or none of them does.
 */
#pragma once

#include "session/conversation/request.h"
#include "session/state/running_task.h"

/* Runs one turn. True: another turn follows; false: the attempt has ended (t->ending and what
 * belongs to it are set). */
bool turn_run (struct session *s, struct running_task *t, struct request *request);
